package model

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/sample-controller/lens/wire"
)

// watch is what is known of the watches of a resource, and of the cache that they fill.
type watch struct {
	Watch
	id, name string
	asking   map[int]bool   // requests that have not been sent
	open     map[int]bool   // requests that are open
	flights  []*flight      // those that are held
	initial  []*wire.Object // of the list that comes now
	broken   bool           // it broke, and has not been opened again
	expired  bool           // its history was gone, and no list has come since
	noted    bool           // a note has said that the first flight is held
}

// flight is a watch event, also after it has arrived.
type flight struct {
	Flight
	id, lane, label, span string
	number                int
	object                *wire.Object
	arrived, passed       time.Duration
}

// watch returns what is known of the watches of resource.
func (m *Model) watch(resource string) *watch {
	for _, w := range m.watches {
		if w.Resource == resource {
			return w
		}
	}
	w := newWatch(resource)
	m.watches = append(m.watches, w)
	m.findPrimary()
	return w
}

func newWatch(resource string) *watch {
	name, _, _ := strings.Cut(resource, ".")
	return &watch{Watch: Watch{Resource: resource}, id: "watch/" + resource, name: name,
		asking: map[int]bool{}, open: map[int]bool{}}
}

// seeWire applies what has happened on the wire.
func (m *Model) seeWire(e *wire.Event) {
	m.learn(e.Object)
	if e.Verb != "watch" || e.Resource == "" || strings.HasPrefix(e.Resource, "leases.") {
		switch e.Kind {
		case wire.RequestArrived:
			m.requestArrived(e)
		case wire.RequestPassed:
			m.requestPassed(e)
		case wire.Answered:
			m.answered(e)
		}
		return
	}
	w := m.watch(e.Resource)
	delete(w.asking, e.Request)
	switch e.Kind {
	case wire.RequestArrived:
		w.asking[e.Request] = true
		if w.State == "" {
			w.to(m, "listing", "")
		}
	case wire.Answered:
		w.answered(m, e)
	case wire.WatchClosed:
		w.closed(m, e)
	case wire.EventArrived:
		if e.Object != nil && e.Type != "BOOKMARK" && e.Type != "ERROR" {
			w.arrived(m, e)
		}
	case wire.EventPassed:
		w.passed(m, e)
	}
}

// to changes the state of the watch.
func (w *watch) to(m *Model, state, note string) {
	w.State, w.Note, w.Behind = state, note, len(w.flights)
	m.show(w.id, &w.Watch)
}

func (w *watch) answered(m *Model, e *wire.Event) {
	switch e.Code {
	case 200:
		if w.broken && !w.expired {
			m.note("", "cut", "The watch of %s broke, and the program has opened it again.", w.name)
		}
		w.open[e.Request] = true
		w.broken = false
		m.running()
		w.to(m, "open", "")
	case 410:
		w.expire(m)
	default:
		note := e.Reason
		if e.Code != 0 { // there is an answer
			note = fmt.Sprintf("%d %s", e.Code, e.Reason)
		}
		if len(w.open) == 0 {
			w.to(m, "closed", note)
		}
	}
}

func (w *watch) closed(m *Model, e *wire.Event) {
	wasOpen := w.open[e.Request]
	delete(w.open, e.Request)
	if !wasOpen || len(w.open) > 0 {
		return
	}
	w.broken = w.broken || e.Injected || e.Reason != ""
	for _, f := range w.flights {
		m.drop(f.id)
		m.end(f.span, true)
	}
	w.flights, w.initial = nil, nil
	if !w.expired {
		w.to(m, "closed", e.Reason)
	}
}

// expire notes that the API server no longer has the events that the watch needs next.
func (w *watch) expire(m *Model) {
	if !w.expired {
		m.note("", "expired",
			"410: the API server no longer has the history that the watch of %s needs.", w.name)
	}
	w.expired = true
	w.to(m, "closed", "410: the history is gone")
}

// arrived notes an event that is on its way to the program.
func (w *watch) arrived(m *Model, e *wire.Event) {
	o := e.Object
	f := &flight{
		Flight: Flight{Resource: e.Resource, Type: e.Type, State: "held", Object: idOf(o)},
		id:     fmt.Sprintf("flight/%d", e.Number), lane: m.laneOf(o),
		label: e.Type + " " + w.name + " " + o.Name, number: e.Number, object: o, arrived: m.at,
	}
	w.flights = append(w.flights, f)
	m.flights.set(nameAt(o), f)
	m.show(f.id, &f.Flight)
	if !m.stored[e.Resource] {
		m.store(e.Type, o)
	}
	if e.Initial {
		w.to(m, "listing", "")
		return
	}
	switch known := m.objects[idOf(o)]; {
	case e.Type == "DELETED" && m.stored[e.Resource]: // it may only have lost a label
	case e.Type == "ADDED" && m.stored[e.Resource] && known != nil:
		m.noteChange(change{m.at, "MODIFIED", o}) // it may only have got a label
	default:
		m.noteChange(change{m.at, e.Type, o})
	}
	if f.lane != "" {
		f.span = m.begin("watch", f.lane, f.label, "handler", m.writers.values[versionOf(o)])
	}
	w.to(m, w.State, w.Note)
}

// passed notes what the program gets.
func (w *watch) passed(m *Model, e *wire.Event) {
	for i, f := range w.flights {
		if f.number == e.Number {
			w.flights = slices.Delete(w.flights, i, i+1)
			w.land(m, f, e.Initial)
			break
		}
	}
	switch {
	case e.Type == "ERROR" && e.Code == 410:
		w.expire(m)
	case e.Type == "ERROR":
		w.broken = true
	case e.Object == nil:
	case e.Type == "BOOKMARK" && e.Initial:
		w.replace(m, w.initial)
		w.State, w.Note = "open", ""
	case e.Type == "BOOKMARK":
	case e.Initial:
		w.initial = append(w.initial, e.Object)
	case e.Type == "DELETED":
		m.uncache(m.objects[idOf(e.Object)])
	default:
		m.cache(e.Object)
	}
	w.to(m, w.State, w.Note)
}

// land ends the flight.
func (w *watch) land(m *Model, f *flight, initial bool) {
	w.noted = false
	f.passed = m.at
	if f.State == "held" {
		f.State = "passed"
	}
	m.show(f.id, &f.Flight)
	m.dropLater(f.id, linger)
	m.end(f.span, false)
	switch {
	case initial: // one note is enough: see replace
	case f.Type == "DELETED":
		m.note(f.lane, "deleted", "The watch of %s says that %s is gone.", w.name, f.object.Name)
	case f.Type == "ADDED":
		m.note(f.lane, "", "The watch of %s brings %s, which is new.", w.name, f.object.Name)
	default:
		m.note(f.lane, "", "The watch of %s brings %s, which has changed.", w.name, f.object.Name)
	}
}

// handled notes that a handler puts the key name on the queue because of the event. It returns the
// ID of the event's span.
func (m *Model) handled(f *flight, name string) string {
	if f.State = "handled"; m.entities[f.id] != nil {
		m.show(f.id, &f.Flight)
	}
	if f.span == "" {
		f.span = m.begin("watch", name, f.label, "handler", m.writers.values[versionOf(f.object)])
		span := m.span(f.span)
		span.Begin, span.End = f.arrived, f.passed
	}
	return f.span
}
