package model

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"
)

// What a Model keeps of the past is limited, because a program may run for days.
const (
	maxSpans = 2000
	maxNotes = 200
	maxIndex = 4096 // resourceVersions whose writers and watch events are known
	maxOver  = 500  // flights and requests that are over
	// linger is how long those are still shown, and lingerRefused if the request was refused: a
	// person reads why.
	linger        = 2 * time.Second
	lingerRefused = 5 * time.Second
	// heldAfter is when it is worth a note that an event is held.
	heldAfter = 300 * time.Millisecond
)

// Model makes Steps of what is seen. It has no clock: it takes the time from what it sees. It may
// not be used by several goroutines at the same time.
type Model struct {
	start time.Time
	at    time.Duration // when the newest event happened
	now   time.Duration // when the lens saw that event

	entities            map[string]Entity // pointers to the types of step.go
	changed, dropped    map[string]bool   // IDs, since the last Step
	spans, notes, overs []string          // IDs, the oldest first
	numbers             map[string]int    // of the last span, note, ...
	timers              []timer           // the first first

	process Process
	server  Server
	gate    Gate

	kind      string            // the kind of the keys, as the log names it
	kinds     map[string]string // resource → kind
	resources map[string]string // kind → resource

	lines   lines
	keys    map[string]*key // those that the queue knows
	workers []*worker
	syncs   recent[string] // IDs of the spans of the last syncs, by key

	going   []*request // those without an answer, the oldest first
	lately  []*request // with or without an answer
	watches []*watch
	objects map[string]*object
	stored  map[string]bool // resources of which Stored tells

	flights  recent[*flight] // by namespace/name@resourceVersion
	writers  recent[string]  // IDs of spans, by the ID of the object and @resourceVersion
	deleters recent[string]  // IDs of the spans of requests, by the ID of the object
	manager  string          // what the managedFields call the program, if that is known
}

// timer is something that happens by itself.
type timer struct {
	at   time.Duration
	fire func()
}

// New returns a Model of a program that nobody has seen yet.
func New(start time.Time) *Model {
	m := &Model{
		start: start.Round(0), gate: Gate{Mode: "open"}, entities: map[string]Entity{},
		changed: map[string]bool{}, dropped: map[string]bool{}, numbers: map[string]int{},
		kinds: map[string]string{}, resources: map[string]string{}, keys: map[string]*key{},
		objects: map[string]*object{}, stored: map[string]bool{},
	}
	m.show("process", &m.process)
	m.show("server", &m.server)
	m.show("gate", &m.gate)
	return m
}

// See applies what was seen, and what has gone away by itself since then, and returns the change.
func (m *Model) See(seen Seen) Step {
	at := seen.At
	var r record
	var logged bool
	if seen.Log != "" {
		if r, logged = m.lines.add(seen.Log, seen.At); logged {
			at = r.at
		}
	} else if seen.Wire != nil {
		at = seen.Wire.At
	}
	m.now = max(m.now, seen.At.Round(0).Sub(m.start))
	m.advance(max(0, at.Round(0).Sub(m.start)))
	switch {
	case logged:
		m.seeRecord(r)
	case seen.Log != "": // no record, or not yet
	case seen.Wire != nil:
		m.seeWire(seen.Wire)
	case seen.Stored != nil:
		m.seeStored(seen.Stored)
	case seen.Program != nil:
		m.seeProgram(seen.Program)
	case seen.Server != nil:
		m.seeServer(seen.Server)
	case seen.Gate != nil:
		m.seeGate(seen.Gate)
	case seen.User != nil:
		m.note("", "", "You run: %s", seen.User.Command)
	default:
		m.tick()
	}
	return m.step()
}

// All returns everything that there is now, for a page that has seen nothing yet.
func (m *Model) All() Step {
	all := Step{At: m.now, Set: make(map[string]Entity, len(m.entities))}
	for id, entity := range m.entities {
		all.Set[id] = value(entity)
	}
	return all
}

// step returns what has changed since the last step.
func (m *Model) step() Step {
	step := Step{At: m.now}
	if len(m.changed) > 0 {
		step.Set = make(map[string]Entity, len(m.changed))
	}
	for id := range m.changed {
		step.Set[id] = value(m.entities[id])
	}
	if len(m.dropped) > 0 {
		step.Drop = slices.Sorted(maps.Keys(m.dropped))
	}
	m.changed, m.dropped = map[string]bool{}, map[string]bool{} // clear is slow if they were large
	return step
}

// value returns what entity points to: the Model changes it later.
func value(entity Entity) Entity { return reflect.ValueOf(entity).Elem().Interface() }

// show makes entity, a pointer, part of the picture, or says that it has changed.
func (m *Model) show(id string, entity Entity) {
	m.entities[id] = entity
	m.changed[id] = true
	delete(m.dropped, id)
}

// drop takes an entity out of the picture.
func (m *Model) drop(id string) {
	if _, ok := m.entities[id]; ok {
		delete(m.entities, id)
		delete(m.changed, id)
		m.dropped[id] = true
	}
}

// dropLater takes an entity that is over out of the picture when it has been seen for some time.
func (m *Model) dropLater(id string, linger time.Duration) {
	m.drop(push(&m.overs, id, maxOver))
	m.after(m.now+linger, func() { m.drop(id) })
}

// push appends id to list. If the list is too long then, it returns the ID that falls out of it.
func push(list *[]string, id string, limit int) (old string) {
	if *list = append(*list, id); len(*list) > limit {
		old, *list = (*list)[0], (*list)[1:]
	}
	return old
}

// next returns a new ID.
func (m *Model) next(what string) string {
	m.numbers[what]++
	return fmt.Sprintf("%s/%d", what, m.numbers[what])
}

// note adds a sentence about now to the list of what happens.
func (m *Model) note(key, lesson, format string, args ...any) {
	m.noteAt(m.at, key, lesson, format, args...)
}

func (m *Model) noteAt(at time.Duration, key, lesson, format string, args ...any) {
	id := m.next("note")
	m.show(id, &Note{At: at, Key: key, Text: fmt.Sprintf(format, args...), Lesson: lesson})
	m.drop(push(&m.notes, id, maxNotes))
}

// after calls fire when that time has come.
func (m *Model) after(at time.Duration, fire func()) {
	i := len(m.timers)
	for i > 0 && m.timers[i-1].at > at {
		i--
	}
	m.timers = slices.Insert(m.timers, i, timer{at, fire})
}

// advance lets happen what happens by itself until at.
func (m *Model) advance(at time.Duration) {
	for len(m.timers) > 0 && m.timers[0].at <= at {
		timer := m.timers[0]
		m.timers = m.timers[1:]
		m.at = timer.at
		timer.fire()
	}
	m.at = at
}

// tick looks at what changes with each step, or only as time passes.
func (m *Model) tick() {
	m.dropLost()
	held := 0
	for _, r := range m.going {
		if r.State == "held" {
			held++
			if m.gate.Mode == "paused" && r.worker != nil && !r.noted && m.at-r.began >= heldAfter {
				r.noted = true
				m.note(r.Key, "", "The request to %s %s is held back: its worker waits.", r.Verb, r.What)
			}
		}
	}
	for _, w := range m.watches {
		held += len(w.asking) + len(w.flights)
		if !w.noted && len(w.flights) > 0 && m.at-w.flights[0].arrived >= heldAfter {
			w.noted = true
			m.note(w.flights[0].lane, "held",
				"An event of %s is held back. The cache does not show it yet.", w.name)
		}
	}
	if m.gate.Waiting != held {
		m.gate.Waiting = held
		m.show("gate", &m.gate)
	}
}

// recent remembers the newest values.
type recent[V any] struct {
	values map[string]V
	order  []string
}

func (r *recent[V]) set(key string, value V) {
	if r.values == nil {
		r.values = map[string]V{}
	}
	if _, ok := r.values[key]; !ok {
		delete(r.values, push(&r.order, key, maxIndex))
	}
	r.values[key] = value
}
