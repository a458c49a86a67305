package explore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/sample-controller/explore/apiserver"
)

// call lets a request happen, and returns its answer.
type call func() (*apiserver.Response, error)

// Serve serves a request of the process, unless that is dead.
func (p *process) Serve(
	ctx context.Context, r *apiserver.Request, do func() (*apiserver.Response, error),
) (*apiserver.Response, error) {
	w := p.world
	w.mu.Lock()
	if p.dead {
		w.mu.Unlock()
		return nil, errDead
	}
	request := p.note(describe(r))
	w.requests = append(w.requests, request)
	w.shootRequest(r, Shot{What: "requested", Object: r.Body})
	tooMany := p.isRestless(request)
	fault := w.faultAt(request)
	w.lag(r)
	w.mu.Unlock()
	if tooMany {
		time.Sleep(time.Second) // otherwise, no time would pass
	}
	happen := func() (*apiserver.Response, error) {
		if request.write {
			time.Sleep(w.latency) // so that what is written with the time does not rest
		}
		w.shootRequest(r, Shot{What: "passed"})
		return w.answer(r, request, do)
	}
	serve := happen
	if fault != nil {
		serve = func() (*apiserver.Response, error) { return fault.request(w, p, happen) }
	}
	var response *apiserver.Response
	var err error
	answered := make(chan struct{})
	go func() { // because the client may give up while the request waits
		defer close(answered)
		response, err = serve()
		w.shootAnswer(r, response, err, fault != nil && err != nil)
	}()
	select {
	case <-answered:
		return response, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// faultAt returns the fault of a request or an event, or nil. w.mu must be held.
func (w *World) faultAt(at Request) *fault {
	for i, f := range w.faults {
		switch {
		case f.at.String() == at.String():
			w.shoot(Shot{What: "fault", Text: f.what})
		case f.forGood && f.at.about() == at.about() &&
			cmp.Or(at.Process-f.at.Process, at.Nth-f.at.Nth) > 0: // it comes later
		case f.at.Kind == "" && at.write:
			w.faults = slices.Delete(w.faults, i, i+1)
		default:
			continue
		}
		if f.hurry {
			select {
			case w.hurry <- struct{}{}:
			default: // they are in a hurry already
			}
		}
		return &f
	}
	return nil
}

// isRestless reports whether a process makes requests without end in one moment. w.mu must be held.
func (p *process) isRestless(r Request) bool {
	const most = 5000
	if !r.At.Equal(p.moment) {
		p.moment, p.atOnce = r.At, 0
	}
	if p.atOnce++; p.atOnce < most {
		return len(p.world.restless) > 0 || len(p.world.unrest) > 0
	}
	if about := r.about(); !slices.Contains(p.world.restless, about) {
		p.world.restless = append(p.world.restless, about)
	}
	return true
}

// answer answers a request as the API server does, unless admission refuses it. It judges what a
// write has changed.
func (w *World) answer(r *apiserver.Request, at Request, do call) (*apiserver.Response, error) {
	if !at.write {
		return do()
	}
	w.serving.Lock()
	defer w.serving.Unlock()
	w.mu.Lock()
	refused := w.line(r.Resource.Resource).refused && r.Verb != "delete" && r.Subresource == ""
	w.mu.Unlock()
	if refused {
		return nil, apierrors.NewForbidden(r.Resource.GroupResource(), r.Name,
			errors.New("refused by a policy"))
	}
	before := len(w.server.History(r.Resource))
	response, err := do()
	if err == nil {
		stored := w.server.History(r.Resource)[before:]
		for _, write := range stored {
			w.judge(r, write)
		}
		w.mu.Lock()
		w.beat(r, stored)
		w.mu.Unlock()
	}
	return response, err
}

// judge counts a write of the controller, and notes it if something speaks against it: that of
// Kubernetes' own kinds, it changes more than the status of what it has not created, or what Always
// says.
func (w *World) judge(r *apiserver.Request, write apiserver.Write) {
	what := Write{
		Verb: r.Verb, Resource: r.Resource.Resource, Subresource: r.Subresource,
		Old: write.Old, New: write.New,
	}
	reason := ""
	switch old := write.Old; {
	case old != nil && !w.own[old.GetUID()] && r.Subresource != "status" && !r.IsCustom():
		reason = "it belongs to somebody else"
	case w.controller.Always != nil:
		reason = w.controller.Always(what, w.State())
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch write.Type {
	case watch.Added:
		w.written[deed{"created", what.Resource}]++
		w.own[write.New.GetUID()] = true
	case watch.Deleted:
		w.written[deed{"deleted", what.Resource}]++
	}
	switch {
	case reason == "":
	case r.Verb == "delete":
		w.deletions = append(w.deletions, what.sentence(reason))
	default:
		w.unasked = append(w.unasked, what.sentence(reason))
	}
}

// Request is a request of the controller, or an event that a watch shows it.
type Request struct {
	Process int
	Kind    string // "update-foos-status", or "foos-MODIFIED" for an event
	Name    string // of the object, "a", or of the reason and the object of an Event
	Nth     int    // of these in the process
	At      time.Time

	write bool // of something but Events and Leases
	verb  string
}

func (r Request) String() string {
	text := fmt.Sprintf("%s-%d", r.about(), r.Nth)
	if r.Process > 1 {
		text = fmt.Sprintf("process-%d-%s", r.Process, text)
	}
	return text
}

// about returns what several requests have in common.
func (r Request) about() string {
	if r.Name == "" {
		return r.Kind
	}
	return r.Kind + "-" + r.Name
}

// describe returns what a request is about.
func describe(r *apiserver.Request) Request {
	if r.Resource.Resource == "" {
		return Request{Kind: "get-" + strings.ReplaceAll(strings.Trim(r.Path, "/"), "/", "-")}
	}
	d := Request{Kind: r.Verb + "-" + r.Resource.Resource, Name: nameIn(r.Namespace, r.Name),
		verb: r.Verb}
	if r.Subresource != "" {
		d.Kind += "-" + r.Subresource
	}
	if r.Resource.Resource == "events" {
		d.Name = "" // Events are named by what they are about: their names differ from run to run
		body := cmp.Or(r.Body, &unstructured.Unstructured{}).Object
		for _, field := range []string{"involvedObject", "regarding"} {
			if name, ok, _ := unstructured.NestedString(body, field, "name"); ok {
				d.Name = fmt.Sprint(body["reason"], "-", name)
			}
		}
	}
	isRead := r.Verb == "get" || r.Verb == "list" || r.Verb == "watch"
	d.write = !isRead && !isSideshow(r.Resource.Resource)
	return d
}

// nameIn returns the name of an object in a case, with its namespace if that is not the default.
func nameIn(namespace, name string) string {
	if namespace == Namespace || namespace == "" {
		return name
	}
	return namespace + "-" + name
}

// note counts a request or an event. w.mu must be held.
func (p *process) note(r Request) Request {
	p.count[r.about()]++
	r.Process, r.Nth, r.At = p.number, p.count[r.about()], time.Now()
	return r
}
