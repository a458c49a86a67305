package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/sample-controller/lens/wire"
)

// request is a request that is no watch.
type request struct {
	Request
	id, resource, target string // target is the ID of the object
	number               int
	event                bool     // it writes an Event, which the recorder does and no worker
	worker               *worker  // that waits for the answer, or nil
	span, sync           string   // IDs of spans
	before               string   // resourceVersion of the object
	claims               []change // changes of its object while it had no answer
	began, passed        time.Duration
	noted                bool // a note has said that it is held
}

// change is a change of an object whose writer is not known yet.
type change struct {
	at     time.Duration
	typ    string
	object *wire.Object
}

// writes reports whether the request may change the object.
func (r *request) writes() bool { return r.Verb != "get" && r.Verb != "list" && !r.event }

func (m *Model) requestArrived(e *wire.Event) {
	plural, _, _ := strings.Cut(e.Resource, ".")
	if plural == "" || plural == "leases" || strings.HasSuffix(plural, "reviews") {
		return
	}
	sent := wire.Object{}
	if e.Object != nil {
		sent = *e.Object
	}
	sent.Resource, sent.Namespace = e.Resource, cmp.Or(sent.Namespace, e.Namespace)
	sent.Name = cmp.Or(e.Name, sent.Name)
	r := &request{Request: Request{Verb: e.Verb, State: "held"}, began: m.at, id: m.next("request"),
		resource: e.Resource, number: e.Request, event: isEvents(e.Resource)}
	r.What = plural
	if e.Subresource != "" {
		r.What += "/" + e.Subresource
	}
	if sent.Name != "" && !r.event {
		r.What += " " + sent.Name
		r.target = idOf(&sent)
		r.Object = r.target
		if known := m.objects[r.target]; known != nil {
			r.before = known.ResourceVersion
		}
	}
	if r.Key = m.keyOfRequest(r, &sent); r.Key != "" {
		cause := ""
		if r.event {
			cause = m.syncs.values[r.Key]
		}
		r.span = m.begin("request", r.Key, r.Verb+" "+r.What, placeOf(e), cause)
	}
	if k := m.keys[r.Key]; k != nil && k.worker != nil && !r.event {
		m.assign(r, k)
	}
	m.going = append(m.going, r)
	m.lately = append(m.lately, r)[max(0, len(m.lately)+1-maxOver):]
	m.show(r.id, &r.Request)
}

// keyOfRequest returns the key on whose behalf a request is: that of the object that is sent; or of
// the owner of the object; or of a sync that has asked for the object before, which is more likely
// if r only reads; or of the only sync.
func (m *Model) keyOfRequest(r *request, sent *wire.Object) string {
	if r.target == "" && !r.event {
		return ""
	}
	lane := m.laneOf(sent)
	if lane != "" || r.event {
		return lane
	}
	before := ""
	for _, other := range m.lately {
		k := m.keys[other.Key]
		if other.target == r.target && (other.sync == "" || k != nil && k.worker != nil) {
			before = other.Key
		}
	}
	if known := m.objects[r.target]; known != nil {
		lane = m.laneOf(known.last)
	}
	if r.writes() {
		return cmp.Or(lane, before, m.onlySync())
	}
	return cmp.Or(before, lane, m.onlySync())
}

// onlySync returns the key that is being synced, or "" if there are several.
func (m *Model) onlySync() (key string) {
	for _, w := range m.workers {
		if w.Key != "" && key != "" {
			return ""
		}
		key = cmp.Or(w.Key, key)
	}
	return key
}

// assign notes that the sync of k makes the request r.
func (m *Model) assign(r *request, k *key) {
	r.sync, r.worker = m.syncs.values[k.name], k.worker
	if span := m.span(r.span); span != nil {
		span.Causes = []string{r.sync}
		m.show(r.span, span)
	}
	if r.State != "answered" {
		k.worker.Request = r.id
		m.show(k.worker.id, &k.worker.Worker)
	}
}

// adopt assigns to the sync of k, which has started just now, the requests that were seen already:
// the line that says so may be read later than they are sent.
func (m *Model) adopt(k *key) {
	for _, r := range m.lately {
		if r.Key == k.name && !r.event && r.began >= m.at {
			m.assign(r, k)
		}
	}
}

// isIdle reports whether the sync of k has had nothing to write until now, and no error either. If
// it is not known whose a write is, it may be that of any sync.
func (m *Model) isIdle(k *key) bool {
	return !slices.ContainsFunc(m.lately, func(r *request) bool {
		failed := r.State == "answered" && r.Code/100 != 2
		may := r.sync == m.syncs.values[k.name] || r.Key == "" && r.began >= k.worker.Since
		return may && r.began <= m.at && (r.writes() || failed)
	})
}

// underWay returns the request that has that number and no answer, or nil.
func (m *Model) underWay(number int) *request {
	for _, r := range m.going {
		if r.number == number {
			return r
		}
	}
	return nil
}

func (m *Model) requestPassed(e *wire.Event) {
	if r := m.underWay(e.Request); r != nil {
		r.State, r.passed = "going", m.at
		m.show(r.id, &r.Request)
		if r.Verb == "delete" && r.target != "" {
			m.deleters.set(r.target, r.span)
		}
	}
}

func (m *Model) answered(e *wire.Event) {
	r := m.underWay(e.Request)
	if r == nil {
		return
	}
	m.going = slices.DeleteFunc(m.going, func(other *request) bool { return other == r })
	r.Held = r.State == "held" && e.Code == 0
	r.State, r.Code, r.Reason, r.Injected = "answered", e.Code, e.Reason, e.Injected
	m.show(r.id, &r.Request)
	failed := e.Code/100 != 2
	if failed {
		m.dropLater(r.id, lingerRefused)
	} else {
		m.dropLater(r.id, linger)
	}
	if span := m.span(r.span); span != nil && r.Held {
		span.Label += ", held by the lens"
	}
	m.end(r.span, failed && !r.Held)
	if w := r.worker; w != nil && w.Request == r.id {
		w.Request = ""
		m.show(w.id, &w.Worker)
	}
	if r.Verb == "list" {
		m.listed(r.resource, failed)
		return
	}
	m.noteAnswer(r)
	m.attribute(r, e.Object)
	if r.writes() && !failed && !m.process.HasLog && m.process.Note == "" {
		m.process.Note = "It logs no syncs, so the picture shows only what goes over the wire."
		m.show("process", &m.process)
	}
}

var verbs = map[string]string{"get": "reads", "create": "creates", "update": "updates",
	"patch": "patches", "delete": "deletes", "deletecollection": "deletes"}

// noteAnswer says in a sentence what was asked and answered. What a success leads to may be seen
// before the answer, but not before the request has passed.
func (m *Model) noteAnswer(r *request) {
	if r.event {
		m.note(r.Key, "", "The program writes an Event about %s.", cmp.Or(r.Key, "something"))
		return
	}
	who, server, lesson, answer := "The program", "The API server", "", fmt.Sprint(r.Code)
	if r.Key != "" && len(m.workers) > 0 { // the lines about its sync may be read later
		who = "The sync of " + r.Key
	}
	at := m.at
	if r.Code/100 == 2 {
		at = r.passed
	}
	if r.Injected {
		server = "The lens"
	}
	switch {
	case r.Held:
		lesson, server, answer = "timeout", "Nobody", fmt.Sprintf("that: the lens held it back, and after "+
			"%v the program waits no longer", (m.at-r.began).Round(time.Second/10))
	case r.Code == 0:
		server, answer = "Nobody", "that: the connection broke"
	case r.Reason == "AlreadyExists":
		lesson, answer = "taken", "409: it exists already"
	case r.Code == 409 && r.Injected:
		lesson, answer = "conflict", "409, as if another program had written in between"
	case r.Code == 409:
		lesson, answer = "conflict", "409: another program wrote in between"
	}
	m.noteAt(at, r.Key, lesson, "%s %s %s. %s answers %s.", who, verbs[r.Verb], r.What, server, answer)
}

// placeOf names the code that makes a request.
func placeOf(e *wire.Event) string {
	switch {
	case e.Subresource == "status":
		return "status"
	case e.Verb == "get":
		return "read"
	case e.Verb == "patch":
		return "update"
	}
	return e.Verb
}

func isEvents(resource string) bool {
	return resource == "events" || resource == "events.events.k8s.io"
}

// idOf returns the ID of the entity of o.
func idOf(o *wire.Object) string { return objectID(o.Resource, o.Namespace, o.Name) }

func objectID(resource, namespace, name string) string {
	return "object/" + resource + "/" + namespace + "/" + name
}
