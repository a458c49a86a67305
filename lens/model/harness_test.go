package model

import (
	"cmp"
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

	started  = `"Started syncing Foo" foo="default/a"`
	finished = `"Finished syncing Foo" foo="default/a"`
)

// lens feeds a Model and has what a page would have.
type lens struct {
	t        *testing.T
	m        *Model
	at       time.Duration
	entities map[string]Entity
	requests int
	watching map[string][]int // the requests of the watches that are open, by resource
	events   int
}

// newLens returns a lens of a program that watches these resources.
func newLens(t *testing.T, watched ...string) *lens {
	m := New(start)
	l := &lens{t: t, m: m, entities: m.All().Set, watching: map[string][]int{}}
	t.Cleanup(l.check)
	for _, resource := range watched {
		l.watch(resource)
	}
	return l
}

// newSync returns a lens of a program that syncs the Foo a, which has the Deployment web.
func newSync(t *testing.T) *lens {
	l := newLens(t, foos)
	l.stored("ADDED", foo("a", "2"))
	l.stored("ADDED", deployment("web", "3", "a"))
	l.log(started)
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
	step := l.m.See(seen)
	maps.Copy(l.entities, step.Set)
	for _, id := range step.Drop {
		if _, ok := step.Set[id]; ok {
			l.t.Errorf("a step sets and drops %s", id)
		}
		delete(l.entities, id)
	}
}

// check proves that the steps, one after the other, make what All returns.
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
}

// wait lets time pass.
func (l *lens) wait(d time.Duration) {
	l.at += d - time.Millisecond
	l.see(Seen{})
}

// log feeds lines without their headers.
func (l *lens) log(lines ...string) {
	for _, line := range lines {
		l.late(-1, line)
	}
}

// late feeds a line that is as old as that.
func (l *lens) late(milliseconds int, line string) {
	clock := start.Add(l.at - time.Duration(milliseconds)*time.Millisecond).Format("15:04:05.000000")
	l.see(Seen{Log: fmt.Sprintf("I0701 %s   12345 controller.go:100] %s", clock, line)})
}

func (l *lens) stored(typ string, o *wire.Object) { l.see(Seen{Stored: &Stored{Type: typ, Object: o}}) }

// wire feeds what happens on the wire, once as each of these kinds.
func (l *lens) wire(e wire.Event, kinds ...wire.Kind) {
	for _, e.Kind = range kinds {
		l.see(Seen{Wire: &e})
	}
}

// open opens a watch of a resource.
func (l *lens) open(resource string) {
	l.requests++
	l.watching[resource] = append(l.watching[resource], l.requests)
	e := wire.Event{Request: l.requests, Verb: "watch", Resource: resource, Code: 200}
	l.wire(e, wire.RequestArrived, wire.RequestPassed, wire.Answered)
}

// watch opens the watch of a resource, which has an empty list.
func (l *lens) watch(resource string) {
	l.open(resource)
	l.initial(resource, "1")
}

// initial feeds the initial list of a watch that is open.
func (l *lens) initial(resource, version string, objects ...*wire.Object) {
	e := wire.Event{Verb: "watch", Resource: resource, Type: "ADDED", Initial: true}
	for _, e.Object = range objects {
		l.events++
		e.Number = l.events
		l.wire(e, wire.EventArrived, wire.EventPassed)
		equal(l.t, "state", get[Watch](l, "watch/"+resource).State, "listing")
	}
	e.Type, e.Object = "BOOKMARK", &wire.Object{Resource: resource, ResourceVersion: version}
	l.wire(e, wire.EventPassed)
}

// cut ends the watch that was opened first.
func (l *lens) cut(resource, reason string) {
	l.close(wire.Event{Verb: "watch", Resource: resource, Reason: reason})
}

func (l *lens) close(e wire.Event) {
	if open := l.watching[e.Resource]; len(open) > 0 {
		e.Request, l.watching[e.Resource] = open[0], open[1:]
	}
	l.wire(e, wire.WatchClosed)
}

// arrive feeds a watch event that has not been passed to the program. It returns the function that
// passes it.
func (l *lens) arrive(typ string, o *wire.Object) (pass func()) {
	l.events++
	e := wire.Event{Request: 1, Verb: "watch", Resource: o.Resource, Type: typ, Object: o,
		Number: l.events}
	l.wire(e, wire.EventArrived)
	return func() { l.wire(e, wire.EventPassed) }
}

// event feeds a watch event that goes to the program.
func (l *lens) event(typ string, o *wire.Object) { l.arrive(typ, o)() }

// request feeds a request that reaches the API server. It returns the function that answers it.
func (l *lens) request(verb, resource, name string, sent *wire.Object) (
	answer func(code int, reason string, o *wire.Object),
) {
	l.requests++
	e := wire.Event{Request: l.requests, Verb: verb, Namespace: "default", Name: name, Object: sent}
	e.Resource, e.Subresource, _ = strings.Cut(resource, "/")
	l.wire(e, wire.RequestArrived, wire.RequestPassed)
	return func(code int, reason string, o *wire.Object) {
		e.Code, e.Reason, e.Object = code, reason, o
		l.wire(e, wire.Answered)
	}
}

// queueing is what a handler logs about an event of o.
func queueing(because string, o *wire.Object) string {
	return fmt.Sprintf(`"Queueing Foo" foo="default/a" because=%q object=%q resourceVersion=%q`,
		because, o.Namespace+"/"+o.Name, o.ResourceVersion)
}

func foo(name, version string) *wire.Object {
	return &wire.Object{Resource: foos, Kind: "Foo", Namespace: "default", Name: name,
		UID: "uid of " + name, ResourceVersion: version}
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

// all returns the entities of a kind that there are, in their order.
func all[E any](l *lens, kind string) (entities []E) {
	for i := range l.m.numbers[kind] {
		if e, ok := l.entities[fmt.Sprintf("%s/%d", kind, i+1)].(E); ok {
			entities = append(entities, e)
		}
	}
	return entities
}

// lessons returns the lessons of the notes.
func (l *lens) lessons() (lessons []string) {
	for _, n := range all[Note](l, "note") {
		if n.Lesson != "" {
			lessons = append(lessons, n.Lesson)
		}
	}
	return lessons
}

// texts returns the sentences of the notes, in the order of the page.
func (l *lens) texts() (texts []string) {
	notes := all[Note](l, "note")
	slices.SortStableFunc(notes, func(a, b Note) int { return cmp.Compare(a.At, b.At) })
	for _, n := range notes {
		texts = append(texts, n.Text)
	}
	return texts
}

// spans returns the bars of that kind.
func (l *lens) spans(what string) []Span {
	return slices.DeleteFunc(all[Span](l, "span"), func(s Span) bool { return s.What != what })
}

// story returns the bars, each with its causes.
func (l *lens) story() []string {
	label := func(s Span) string { return s.What + ": " + s.Label }
	var story []string
	for _, s := range all[Span](l, "span") {
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
