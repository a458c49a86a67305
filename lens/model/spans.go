package model

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/lens/wire"
)

// managedFieldsAge is how old the newest managedFields may be: their time is in whole seconds.
const managedFieldsAge = 2 * time.Second

// begin begins a bar of the time line, and returns its ID.
func (m *Model) begin(what, key, label, place, cause string) string {
	id := m.next("span")
	m.show(id, &Span{Key: key, What: what, Label: label, Place: place, Begin: m.at})
	m.cause(id, cause)
	m.drop(push(&m.spans, id, maxSpans))
	return id
}

// span returns the bar of that ID, or nil if it is gone.
func (m *Model) span(id string) *Span {
	span, _ := m.entities[id].(*Span)
	return span
}

// end ends a bar, unless it has ended before.
func (m *Model) end(id string, failed bool) {
	if span := m.span(id); span != nil && span.End == 0 {
		span.End = max(m.at, span.Begin)
		span.Failed = span.Failed || failed
		m.show(id, span)
	}
}

// cause adds a cause to a bar.
func (m *Model) cause(id, cause string) {
	span := m.span(id)
	if span != nil && cause != "" && !slices.Contains(span.Causes, cause) {
		span.Causes = append(span.Causes, cause)
		m.show(id, span)
	}
}

// nameAt names a state of an object as a handler logs it.
func nameAt(o *wire.Object) string {
	return cache.NewObjectName(o.Namespace, o.Name).String() + "@" + o.ResourceVersion
}

// versionOf names a state of an object.
func versionOf(o *wire.Object) string { return idOf(o) + "@" + o.ResourceVersion }

// noteChange finds out who has made a change. It may be called several times for a change.
func (m *Model) noteChange(c change) {
	typ, o := c.typ, c.object
	if _, known := m.writers.values[versionOf(o)]; known {
		return
	}
	if span, ok := m.deleters.values[idOf(o)]; ok && (typ == "DELETED" || o.Deleting) {
		if typ == "DELETED" {
			delete(m.deleters.values, idOf(o))
		}
		m.wrote(o, span)
		return
	}
	for _, r := range m.going {
		if r.target == idOf(o) && r.writes() && r.State == "going" {
			r.claims = append(r.claims, c) // the answer will tell
			return
		}
	}
	m.somebody(c)
}

// wrote notes that the span is the writer of o. The watch event may have been seen before.
func (m *Model) wrote(o *wire.Object, span string) {
	m.writers.set(versionOf(o), span)
	if f := m.flights.values[nameAt(o)]; f != nil && f.Resource == o.Resource {
		m.cause(f.span, span)
	}
}

// attribute decides, with the answer of r, which changes were those of r. If the answer is lost, it
// may have been any.
func (m *Model) attribute(r *request, answer *wire.Object) {
	switch {
	case r.Verb == "delete" && r.Code >= 300:
		delete(m.deleters.values, r.target)
	case !r.writes() || r.Verb == "delete" || r.Code >= 300 || answer == nil:
	case answer.ResourceVersion != "" && answer.ResourceVersion != r.before: // else it changed nothing
		m.wrote(answer, r.span)
		if r.Code == http.StatusCreated && len(answer.Managers) == 1 {
			m.manager = answer.Managers[0]
		}
		if !m.stored[r.resource] {
			m.store("MODIFIED", answer)
		}
	}
	for _, c := range r.claims {
		if r.Code == 0 {
			m.wrote(c.object, r.span)
		}
		m.noteChange(c)
	}
}

// somebody notes a change that the program has not made: of the user, or of another controller.
func (m *Model) somebody(c change) {
	o, lane := c.object, m.laneOf(c.object)
	if f := m.flights.values[nameAt(o)]; f != nil {
		c.at = min(c.at, f.arrived) // the event may be faster than that which tells of the change
	}
	if lane == "" {
		return
	}
	verb := map[string]string{"ADDED": "creates", "MODIFIED": "changes", "DELETED": "deletes"}[c.typ]
	did := cmp.Or(m.otherWriter(c), "Another program") + " " + verb + " " + o.Kind + " " + o.Name
	m.noteAt(c.at, lane, "", "%s.", did)
	id := m.begin("user", lane, did, "", "")
	span := m.span(id)
	span.Begin, span.End = c.at, c.at
	m.wrote(o, id)
}

// otherWriter names who has made a change that is not of the program. The newest managedFields
// tell, if they were written just now and not by several others; else it returns "".
func (m *Model) otherWriter(c change) string {
	others := slices.DeleteFunc(slices.Clone(c.object.Managers), func(manager string) bool {
		return manager == m.manager
	})
	age := m.start.Add(c.at).Sub(c.object.Written)
	if len(others) != 1 || age > managedFieldsAge || c.object.Deleting || c.typ == "DELETED" {
		return ""
	}
	return others[0]
}
