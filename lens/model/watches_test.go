package model

import (
	"fmt"
	"testing"
	"time"

	"example.com/sample-controller/lens/wire"
)

// cut ends the watch that was opened first.
func (l *lens) cut(resource, reason string) {
	l.see(Seen{Wire: &wire.Event{Kind: wire.WatchClosed, Request: 1, Verb: "watch",
		Resource: resource, Reason: reason}})
}

func TestTheCacheIsBehindUntilAnEventHasPassed(t *testing.T) {
	l := newLens(t)
	l.watch(foos)
	behind := func() int { return get[Watch](l, "watch/"+foos).Behind }
	l.stored("ADDED", foo("a", "2"))
	equal(t, "stored", [2]any{get[Object](l, fooID).ResourceVersion, behind()}, [2]any{"2", 1})
	pass := l.arrive("ADDED", foo("a", "2"))
	equal(t, "arrived", [2]any{get[Flight](l, "flight/1").State, behind()}, [2]any{"held", 1})
	equal(t, "cached", get[Object](l, fooID).Cached, "")
	l.stored("MODIFIED", foo("a", "3"))
	equal(t, "stored again", behind(), 2)
	pass()
	equal(t, "passed", [2]any{get[Flight](l, "flight/1").State, behind()}, [2]any{"passed", 1})
	equal(t, "cached", get[Object](l, fooID).Cached, "2")
	l.log(`"Queueing Foo" foo="default/a" because="Foo added" object="default/a" resourceVersion="2"`)
	equal(t, "handled", get[Flight](l, "flight/1").State, "handled")
	l.event("MODIFIED", foo("a", "3"))
	equal(t, "passed", [2]any{get[Object](l, fooID).Cached, behind()}, [2]any{"3", 0})

	l.stored("DELETED", foo("a", "4"))
	equal(t, "deleted", [2]any{get[Object](l, fooID).ResourceVersion, behind()}, [2]any{"", 1})
	l.event("DELETED", foo("a", "4"))
	equal(t, "it is nowhere", [2]any{get[Object](l, fooID), behind()}, [2]any{Object{}, 0})
	equal(t, "lessons", l.lessons(), []string{"deleted"})
	l.wait(linger + time.Millisecond)
	equal(t, "flights go", get[Flight](l, "flight/1"), Flight{})
}

func TestAChangeThatIsStoredAfterItsEventHasPassedIsNotBehind(t *testing.T) {
	l := newLens(t)
	l.watch(foos)
	l.event("ADDED", foo("a", "2"))
	l.stored("ADDED", foo("a", "2"))
	equal(t, "behind", get[Watch](l, "watch/"+foos).Behind, 0)
}

func TestWhatTheWatchDoesNotSelectIsNotBehind(t *testing.T) {
	l := newLens(t)
	l.watch(foos)
	l.watch(deployments)
	l.stored("ADDED", foo("a", "2"))
	l.event("ADDED", foo("a", "2"))
	l.stored("ADDED", deployment("other", "3", ""))
	equal(t, "of nobody", get[Watch](l, "watch/"+deployments).Behind, 0)
	l.stored("ADDED", deployment("web", "4", "a"))
	l.event("ADDED", deployment("web", "4", "a"))
	l.stored("MODIFIED", deployment("web", "5", "a")) // somebody takes off the label
	l.event("DELETED", deployment("web", "5", "a"))
	o := get[Object](l, deploymentID)
	equal(t, "it is stored, and not cached", [2]string{o.ResourceVersion, o.Cached}, [2]string{"5", ""})
	l.stored("MODIFIED", deployment("web", "6", "a"))
	equal(t, "the label is off", get[Watch](l, "watch/"+deployments).Behind, 0)
}

func TestAnEventThatIsHeldIsNoted(t *testing.T) {
	l := newLens(t)
	l.watch(foos)
	pass := l.arrive("ADDED", foo("a", "2"))
	l.wait(heldAfter)
	l.wait(heldAfter)
	equal(t, "lessons", l.lessons(), []string{"held"})
	equal(t, "gate", get[Gate](l, "gate"), Gate{Mode: "open", Waiting: 1})
	pass()
	l.wait(time.Millisecond)
	equal(t, "gate", get[Gate](l, "gate"), Gate{Mode: "open", Waiting: 0})
	equal(t, "its span", l.spans("watch")[0].End-l.spans("watch")[0].Begin > heldAfter, true)
	equal(t, "it has not failed", l.spans("watch")[0].Failed, false)
	l.arrive("MODIFIED", foo("a", "2"))() // once more
	pass = l.arrive("MODIFIED", foo("a", "2"))
	l.wait(heldAfter)
	equal(t, "lessons", l.lessons(), []string{"held", "held"})
	pass()
	l.see(Seen{Gate: &Gate{Mode: "paused"}})
	l.arrive("MODIFIED", foo("a", "3"))
	l.wait(time.Millisecond)
	equal(t, "gate", get[Gate](l, "gate"), Gate{Mode: "paused", Waiting: 1})
}

// initial feeds the initial list of a watch that is open.
func (l *lens) initial(resource, version string, objects ...*wire.Object) {
	for _, o := range objects {
		l.events++
		for _, kind := range []wire.Kind{wire.EventArrived, wire.EventPassed} {
			l.see(Seen{Wire: &wire.Event{Kind: kind, Verb: "watch", Resource: resource, Type: "ADDED",
				Object: o, Number: l.events, Initial: true}})
		}
	}
	equal(l.t, "state", get[Watch](l, "watch/"+resource).State, "listing")
	l.see(Seen{Wire: &wire.Event{Kind: wire.EventPassed, Verb: "watch", Resource: resource,
		Type: "BOOKMARK", Initial: true, Object: &wire.Object{Resource: resource, ResourceVersion: version}}})
}

func TestTheHistoryIsGoneAndTheProgramListsAgain(t *testing.T) {
	for name, tell := range map[string]wire.Event{
		"an event":  {Kind: wire.EventPassed, Type: "ERROR", Code: 410, Reason: "Expired"},
		"an answer": {Kind: wire.Answered, Code: 410, Reason: "Expired"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLens(t)
			l.watch(foos)
			l.event("ADDED", foo("a", "2"))
			l.event("ADDED", foo("b", "3"))
			tell.Verb, tell.Resource = "watch", foos
			l.see(Seen{Wire: &tell})
			l.cut(foos, "")
			equal(t, "state", get[Watch](l, "watch/"+foos).State, "closed")
			l.stored("DELETED", foo("b", "4"))
			l.stored("ADDED", foo("c", "5"))

			e := wire.Event{Kind: wire.RequestArrived, Request: 2, Verb: "watch", Resource: foos, Code: 200}
			l.see(Seen{Wire: &e})
			answered := e
			answered.Kind = wire.Answered
			l.see(Seen{Wire: &answered})
			l.initial(foos, "5", foo("c", "5"), foo("a", "2"))

			w := get[Watch](l, "watch/"+foos)
			equal(t, "watch", w, Watch{Resource: foos, State: "open"})
			for id, want := range map[string]string{"a": "2", "b": "", "c": "5"} {
				equal(t, "cached "+id, get[Object](l, "object/"+foos+"/default/"+id).Cached, want)
			}
			equal(t, "lessons", l.lessons(), []string{"expired", "expired"})

			l.initial(foos, "6", foo("c", "5")) // for another reason
			equal(t, "cached a", get[Object](l, fooID).Cached, "")
			equal(t, "lessons", l.lessons(), []string{"expired", "expired"})
		})
	}
}

func TestAListFillsTheCache(t *testing.T) {
	l := newLens(t)
	for _, o := range []*wire.Object{foo("a", "2"), deployment("web", "3", "a"), deployment("other", "4", "")} {
		l.see(Seen{Stored: &Stored{Type: "ADDED", Object: o, Initial: true}})
	}
	for _, resource := range []string{foos, deployments} {
		e := wire.Event{Kind: wire.RequestArrived, Request: 1, Verb: "watch", Resource: resource}
		l.see(Seen{Wire: &e}) // it is refused: this API server has no WatchList
		l.request("list", resource, "", nil)(200, "", nil)
		answered := e
		answered.Kind, answered.Code = wire.Answered, 200
		l.see(Seen{Wire: &answered})
		equal(t, "state", get[Watch](l, "watch/"+resource).State, "open")
	}
	equal(t, "Foo", get[Object](l, fooID).Cached, "2")
	equal(t, "Deployment", get[Object](l, deploymentID).Cached, "3")
	equal(t, "other", get[Object](l, "object/"+deployments+"/default/other").Cached, "")
	equal(t, "spans", len(l.story()), 0)
}

func TestAListThatFailsChangesNothing(t *testing.T) {
	l := newLens(t)
	l.watch(foos)
	l.event("ADDED", foo("a", "2"))
	l.stored("ADDED", foo("b", "3"))
	l.request("list", foos, "", nil)(500, "", nil)
	equal(t, "a", get[Object](l, fooID).Cached, "2")
	equal(t, "behind", get[Watch](l, "watch/"+foos).Behind, 1)
	l.request("list", foos, "", nil)(200, "", nil)
	equal(t, "behind", get[Watch](l, "watch/"+foos).Behind, 0)
	equal(t, "b", get[Object](l, "object/"+foos+"/default/b").Cached, "3")
}

func TestAnEventMayBeFasterThanWhatIsStored(t *testing.T) {
	l := newLens(t)
	l.watch(foos)
	l.stored("ADDED", foo("b", "2"))
	l.event("ADDED", foo("a", "3"))
	equal(t, "object", get[Object](l, fooID).Cached, "3")
	equal(t, "it is not known to be stored", get[Object](l, fooID).ResourceVersion, "")
	l.initial(foos, "9", foo("a", "3"))
	l.stored("MODIFIED", foo("a", "8"))
	equal(t, "the list was newer", get[Watch](l, "watch/"+foos).Behind, 0)
}

func TestAListThatIsHeldIsBehind(t *testing.T) {
	l := newLens(t)
	event := func(kind wire.Kind, number int) {
		name := string('a' + rune(number))
		l.see(Seen{Wire: &wire.Event{Kind: kind, Verb: "watch", Resource: foos, Type: "ADDED",
			Object: foo(name, "2"), Number: number, Initial: true}})
	}
	event(wire.EventArrived, 0)
	event(wire.EventArrived, 1)
	equal(t, "watch", get[Watch](l, "watch/"+foos), Watch{Resource: foos, State: "listing", Behind: 2})
	event(wire.EventPassed, 0)
	at := l.at
	equal(t, "behind", get[Watch](l, "watch/"+foos).Behind, 1)
	l.log(`"Queueing Foo" foo="default/a" because="Foo added" object="default/a" resourceVersion="2"`)
	equal(t, "end of the span", l.spans("watch")[0].End, at)
}

func TestAWatchThatBreaksIsOpenedAgain(t *testing.T) {
	l := newLens(t)
	l.watch(foos)
	l.event("ADDED", foo("a", "2"))
	l.arrive("MODIFIED", foo("a", "3")) // it is lost
	l.cut(foos, "injected: connection cut")
	equal(t, "watch", get[Watch](l, "watch/"+foos), Watch{Resource: foos, State: "closed", Behind: 1,
		Note: "injected: connection cut"})
	equal(t, "the lost event", get[Flight](l, "flight/2"), Flight{})
	equal(t, "its span has failed", l.spans("watch")[1].Failed, true)
	l.wait(time.Millisecond)
	equal(t, "waiting", get[Gate](l, "gate").Waiting, 0)
	e := wire.Event{Request: 2, Verb: "watch", Resource: foos, Code: 200, Kind: wire.RequestArrived}
	l.see(Seen{Wire: &e})
	answered := e
	answered.Kind = wire.Answered
	l.see(Seen{Wire: &answered})
	equal(t, "state", get[Watch](l, "watch/"+foos).State, "open")
	equal(t, "cache", get[Object](l, fooID).Cached, "2")
	equal(t, "lessons", l.lessons(), []string{"cut"})
	l.event("MODIFIED", foo("a", "3"))
	equal(t, "behind", get[Watch](l, "watch/"+foos).Behind, 0)
	l.cut(foos, "") // the API server ends it
	l.see(Seen{Wire: &answered})
	equal(t, "lessons", l.lessons(), []string{"cut"})
}

func TestWhyAWatchBreaks(t *testing.T) {
	for name, e := range map[string]wire.Event{
		"cut":   {Kind: wire.WatchClosed, Injected: true},
		"error": {Kind: wire.EventPassed, Type: "ERROR", Code: 500},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLens(t)
			l.watch(foos)
			e.Verb, e.Resource = "watch", foos
			l.see(Seen{Wire: &e})
			l.cut(foos, "")
			l.watch(foos)
			equal(t, "lessons", l.lessons(), []string{"cut"})
		})
	}
}

func TestABookmarkSaysWhatTheProgramHasGot(t *testing.T) {
	l := newLens(t)
	l.watch(foos)
	l.stored("ADDED", foo("a", "5"))
	for i, version := range []string{"4", "5"} {
		o := &wire.Object{Resource: foos, Kind: "Foo", ResourceVersion: version}
		for _, kind := range []wire.Kind{wire.EventArrived, wire.EventPassed} {
			l.see(Seen{Wire: &wire.Event{Kind: kind, Verb: "watch", Resource: foos, Type: "BOOKMARK", Object: o}})
		}
		equal(t, "behind after "+version, get[Watch](l, "watch/"+foos).Behind, 1-i)
	}
	equal(t, "flights", get[Flight](l, "flight/0"), Flight{})
}

func TestAWatchOfANamespace(t *testing.T) {
	l := newLens(t)
	e := wire.Event{Kind: wire.RequestArrived, Verb: "watch", Resource: foos, Namespace: "other"}
	l.see(Seen{Wire: &e})
	l.stored("ADDED", foo("a", "2"))
	equal(t, "behind", get[Watch](l, "watch/"+foos).Behind, 0)
}

func TestAWatchThatIsRefused(t *testing.T) {
	for want, answer := range map[string]wire.Event{
		"403 Forbidden":      {Code: 403, Reason: "Forbidden"},
		"connection refused": {Reason: "connection refused"},
	} {
		l := newLens(t)
		e := wire.Event{Request: 1, Verb: "watch", Resource: foos, Kind: wire.RequestArrived}
		l.see(Seen{Wire: &e})
		equal(t, "state", get[Watch](l, "watch/"+foos).State, "listing")
		answer.Request, answer.Verb, answer.Resource, answer.Kind = 1, "watch", foos, wire.Answered
		l.see(Seen{Wire: &answer})
		l.cut(foos, "")
		equal(t, "watch", get[Watch](l, "watch/"+foos), Watch{Resource: foos, State: "closed", Note: want})
	}
}

func TestOneOfTwoWatchesCloses(t *testing.T) {
	l := newLens(t)
	l.watch(foos)
	l.watch(foos)
	l.cut(foos, "EOF")
	equal(t, "state", get[Watch](l, "watch/"+foos).State, "open")
	l.cut(foos, "EOF")
	equal(t, "state", get[Watch](l, "watch/"+foos).State, "closed")
}

func TestTheServerEndsAWatchAsAlways(t *testing.T) {
	l := newLens(t)
	l.watch(foos)
	l.cut(foos, "")
	l.watch(foos)
	equal(t, "lessons", l.lessons(), []string(nil))
}

func TestTheCacheGoesWithTheProcess(t *testing.T) {
	l := newLens(t)
	l.watch(foos)
	l.stored("ADDED", foo("a", "2"))
	l.event("ADDED", foo("a", "2"))
	l.arrive("MODIFIED", foo("a", "3"))
	l.request("get", foos, "a", nil)
	l.see(Seen{Program: &Program{Command: "x", Note: "killed"}})
	o := get[Object](l, fooID)
	equal(t, "object", [2]string{o.ResourceVersion, o.Cached}, [2]string{"2", ""})
	equal(t, "watch", get[Watch](l, "watch/"+foos), Watch{Resource: foos, State: "closed"})
	equal(t, "flight", get[Flight](l, "flight/2"), Flight{})
	equal(t, "request", get[Request](l, "request/1"), Request{})
	equal(t, "process", get[Process](l, "process").State, "exited")
	equal(t, "note", get[Process](l, "process").Note, "killed")
	l.stored("MODIFIED", foo("a", "4"))
	equal(t, "behind", get[Watch](l, "watch/"+foos).Behind, 0)
}

func TestOwners(t *testing.T) {
	l := newLens(t)
	l.stored("ADDED", deployment("web", "3", "a")) // which resource a Foo is is not known yet
	equal(t, "owner", get[Object](l, deploymentID).Owner, "")
	l.stored("ADDED", foo("a", "2"))
	equal(t, "owner", get[Object](l, deploymentID).Owner, fooID)
	l.watch(foos)
	pod := &wire.Object{Resource: "pods", Kind: "Pod", Namespace: "default", Name: "web-1",
		ResourceVersion: "4", Owner: &wire.Owner{Kind: "Deployment", Name: "web"}}
	l.stored("ADDED", pod)
	equal(t, "the Pod's lane", l.spans("user")[0].Key, "default/a")
}

func TestOnlySoManyObjectsAreDrawn(t *testing.T) {
	l := newLens(t)
	for i := range maxObjects + 10 {
		l.stored("ADDED", foo(fmt.Sprint(i), fmt.Sprint(i+2)))
	}
	l.stored("DELETED", foo(fmt.Sprint(maxObjects+5), "99999"))
	l.wait(time.Millisecond)
	equal(t, "more", get[Totals](l, "totals").MoreObjects, 9)
}

func TestTheServerGoesAndComesBack(t *testing.T) {
	l := newLens(t)
	for _, state := range []string{"up", "up", "down", "down", "up"} {
		l.see(Seen{Server: &Server{State: state, Host: "127.0.0.1"}})
		equal(t, "state", get[Server](l, "server").State, state)
	}
	equal(t, "notes", l.m.numbers["note"], 2)
}
