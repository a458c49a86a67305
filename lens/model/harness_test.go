package model

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/sample-controller/lens/wire"
)

var start = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

const (
	foos         = "foos.samplecontroller.k8s.io"
	deployments  = "deployments.apps"
	fooID        = "object/foos.samplecontroller.k8s.io/default/a"
	deploymentID = "object/deployments.apps/default/web"
)

// lens feeds a Model and has what a page would have.
type lens struct {
	t        *testing.T
	m        *Model
	at       time.Duration
	entities map[string]Entity
	seen     []Seen
	steps    []Step
	requests int
	events   int
}

func newLens(t *testing.T) *lens {
	m := New(start, "")
	l := &lens{t: t, m: m, entities: m.All().Set}
	t.Cleanup(l.check)
	return l
}

// see feeds the Model a millisecond later.
func (l *lens) see(seen Seen) {
	l.at += time.Millisecond
	seen.At = start.Add(l.at)
	if seen.Wire != nil { // it happens, and is seen a moment later
		e := *seen.Wire
		e.At = seen.At
		seen.Wire = &e
		seen.At = seen.At.Add(100 * time.Microsecond)
	}
	l.seen = append(l.seen, seen)
	l.apply(l.m.See(seen))
}

func (l *lens) apply(step Step) {
	l.steps = append(l.steps, step)
	maps.Copy(l.entities, step.Set)
	for _, id := range step.Drop {
		if _, ok := step.Set[id]; ok {
			l.t.Errorf("a step sets and drops %s", id)
		}
		delete(l.entities, id)
	}
}

// check proves that the steps, one after the other, make what All returns, and that the same things
// seen make the same steps.
func (l *lens) check() {
	l.t.Helper()
	all := l.m.All().Set
	for id, want := range all {
		if got := l.entities[id]; !reflect.DeepEqual(got, want) {
			l.t.Errorf("the steps made %s\n%v, and All returns\n%v", id, got, want)
		}
	}
	for id, entity := range l.entities {
		if all[id] == nil {
			l.t.Errorf("no step has dropped %s", id)
		}
		if note, ok := entity.(Note); ok && len(strings.Fields(note.Text)) > 25 {
			l.t.Errorf("a long note: %s", note.Text)
		}
	}
	again := New(start, "")
	for i, seen := range l.seen {
		data, err := json.Marshal(seen)
		if err != nil {
			l.t.Fatal(err)
		}
		var read Seen
		if err := json.Unmarshal(data, &read); err != nil {
			l.t.Fatal(err)
		}
		if got := again.See(read); !reflect.DeepEqual(got, l.steps[i]) {
			l.t.Fatalf("%s made\n%v, and when it was played again\n%v", data, l.steps[i], got)
		}
	}
}

// wait lets time pass.
func (l *lens) wait(d time.Duration) {
	l.at += d - time.Millisecond
	l.see(Seen{})
}

// log feeds lines without their headers.
func (l *lens) log(lines ...string) {
	for _, line := range lines {
		clock := start.Add(l.at + time.Millisecond).Format("15:04:05.000000")
		l.see(Seen{Log: fmt.Sprintf("I0701 %s   12345 controller.go:100] %s", clock, line)})
	}
}

func (l *lens) stored(typ string, o *wire.Object) { l.see(Seen{Stored: &Stored{Type: typ, Object: o}}) }

// watch opens the watch of a resource, which has an empty list.
func (l *lens) watch(resource string) int {
	l.requests++
	e := wire.Event{Request: l.requests, Verb: "watch", Resource: resource, Code: 200}
	for _, kind := range []wire.Kind{wire.RequestArrived, wire.RequestPassed, wire.Answered} {
		e := e
		e.Kind = kind
		l.see(Seen{Wire: &e})
	}
	e.Kind, e.Type, e.Initial, e.Code = wire.EventPassed, "BOOKMARK", true, 0
	e.Object = &wire.Object{Resource: resource, ResourceVersion: "1"}
	l.see(Seen{Wire: &e})
	return l.requests
}

// arrive feeds a watch event that has not been passed to the program. It returns the function that
// passes it.
func (l *lens) arrive(typ string, o *wire.Object) (pass func()) {
	l.events++
	e := wire.Event{Kind: wire.EventArrived, Request: 1, Verb: "watch", Resource: o.Resource,
		Type: typ, Object: o, Number: l.events}
	passed := e
	passed.Kind = wire.EventPassed
	l.see(Seen{Wire: &e})
	return func() { l.see(Seen{Wire: &passed}) }
}

// event feeds a watch event that goes to the program.
func (l *lens) event(typ string, o *wire.Object) { l.arrive(typ, o)() }

// request feeds a request that reaches the API server. It returns the function that answers it.
func (l *lens) request(verb, resource, name string, sent *wire.Object) (
	answer func(code int, reason string, o *wire.Object),
) {
	l.requests++
	e := wire.Event{Kind: wire.RequestArrived, Request: l.requests, Verb: verb, Resource: resource,
		Namespace: "default", Name: name, Object: sent}
	e.Resource, e.Subresource, _ = strings.Cut(resource, "/")
	passed, answered := e, e
	passed.Kind, answered.Kind = wire.RequestPassed, wire.Answered
	l.see(Seen{Wire: &e})
	l.see(Seen{Wire: &passed})
	return func(code int, reason string, o *wire.Object) {
		answered.Code, answered.Reason, answered.Object = code, reason, o
		l.see(Seen{Wire: &answered})
	}
}

func foo(name, version string) *wire.Object {
	return &wire.Object{Resource: foos, Kind: "Foo", Namespace: "default", Name: name,
		ResourceVersion: version}
}

// deployment returns a Deployment of the Foo of that name, or of nobody.
func deployment(name, version, owner string) *wire.Object {
	o := &wire.Object{Resource: deployments, Kind: "Deployment", Namespace: "default", Name: name,
		ResourceVersion: version}
	if owner != "" {
		o.Owner = &wire.Owner{Kind: "Foo", Name: owner}
	}
	return o
}

// get returns the entity of that ID, or the zero value if there is none.
func get[E any](l *lens, id string) E {
	e, _ := l.entities[id].(E)
	return e
}

// lessons returns the lessons of the notes, in their order.
func (l *lens) lessons() []string {
	var lessons []string
	for i := range l.m.numbers["note"] {
		if n := get[Note](l, fmt.Sprintf("note/%d", i+1)); n.Lesson != "" {
			lessons = append(lessons, n.Lesson)
		}
	}
	return lessons
}

// texts returns the sentences of the notes, in their order.
func (l *lens) texts() []string {
	var texts []string
	for i := range l.m.numbers["note"] {
		texts = append(texts, get[Note](l, fmt.Sprintf("note/%d", i+1)).Text)
	}
	return texts
}

// spans returns the bars of that kind, in their order.
func (l *lens) spans(what string) []Span {
	var spans []Span
	for i := range l.m.numbers["span"] {
		if s := get[Span](l, fmt.Sprintf("span/%d", i+1)); s.What == what {
			spans = append(spans, s)
		}
	}
	return spans
}

// story returns the bars, each with its causes.
func (l *lens) story() []string {
	label := func(s Span) string { return s.What + ": " + s.Label }
	var story []string
	for i := range l.m.numbers["span"] {
		s := get[Span](l, fmt.Sprintf("span/%d", i+1))
		text := label(s)
		for _, cause := range s.Causes {
			text += " <- " + label(get[Span](l, cause))
		}
		story = append(story, text)
	}
	return story
}

func equal[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got\n%v, want\n%v", what, got, want)
	}
}

func contains(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !slices.Contains(got, w) {
			t.Errorf("%s: got\n%s\nwithout\n%s", what, strings.Join(got, "\n"), w)
		}
	}
}
