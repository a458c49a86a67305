package model

import (
	"testing"
	"time"

	"example.com/sample-controller/lens/wire"
)

// behind returns how many events are on their way.
func (l *lens) behind(resource string) int { return get[Watch](l, "watch/"+resource).Behind }

// cached returns the resourceVersions of an object in the API server and in the cache.
func (l *lens) cached(id string) [2]string {
	o := get[Object](l, id)
	return [2]string{o.ResourceVersion, o.Cached}
}

func TestTheCacheIsBehindUntilAnEventHasPassed(t *testing.T) {
	l := newLens(t, foos)
	want := func(stored, cached string, behind int) {
		t.Helper()
		equal(t, "stored and cached", l.cached(fooID), [2]string{stored, cached})
		equal(t, "behind", l.behind(foos), behind)
	}
	l.stored("ADDED", foo("a", "2"))
	want("2", "", 0)
	pass := l.arrive("ADDED", foo("a", "2"))
	equal(t, "arrived", get[Flight](l, "flight/1").State, "held")
	l.stored("MODIFIED", foo("a", "3"))
	want("3", "", 1)
	pass()
	equal(t, "passed", get[Flight](l, "flight/1").State, "passed")
	want("3", "2", 0)
	l.log(queueing("Foo added", foo("a", "2")))
	equal(t, "handled", get[Flight](l, "flight/1").State, "handled")
	l.event("MODIFIED", foo("a", "3"))
	want("3", "3", 0)
	l.stored("DELETED", foo("a", "4"))
	want("", "3", 0)
	l.event("DELETED", foo("a", "4"))
	equal(t, "it is nowhere", get[Object](l, fooID), Object{})
	equal(t, "lessons", l.lessons(), []string{"deleted"})
	l.wait(linger + time.Millisecond)
	equal(t, "flights go", get[Flight](l, "flight/1"), Flight{})

	l.event("ADDED", foo("a", "5")) // it may be faster than what is stored
	want("", "5", 0)
	l.stored("ADDED", foo("a", "5"))
	want("5", "5", 0)
	l.initial(foos, "9", foo("a", "5"))
	l.stored("MODIFIED", foo("a", "8")) // the list was newer
	want("8", "5", 0)
}

func TestWhatLosesItsLabelIsStoredAndNotCached(t *testing.T) {
	l := newLens(t, foos, deployments)
	l.stored("ADDED", foo("a", "2"))
	l.stored("ADDED", deployment("web", "4", "a"))
	l.event("ADDED", deployment("web", "4", "a"))
	l.stored("MODIFIED", deployment("web", "5", "a"))
	l.event("DELETED", deployment("web", "5", "a"))
	equal(t, "versions", l.cached(deploymentID), [2]string{"5", ""})
}

func TestAnEventThatIsHeldIsNoted(t *testing.T) {
	l := newLens(t, foos)
	for i := range 2 {
		pass := l.arrive("MODIFIED", foo("a", "2"))
		l.wait(heldAfter)
		l.wait(heldAfter)
		equal(t, "lessons", len(l.lessons()), i+1)
		equal(t, "gate", get[Gate](l, "gate"), Gate{Mode: "open", Waiting: 1})
		pass()
		l.wait(time.Millisecond)
		equal(t, "gate", get[Gate](l, "gate"), Gate{Mode: "open", Waiting: 0})
		s := l.spans("watch")[i]
		equal(t, "its span", s.End-s.Begin > heldAfter && !s.Failed, true)
	}
	for _, mode := range []string{"slow", "paused", "open"} {
		l.see(Seen{Gate: &Gate{Mode: mode}})
		equal(t, "mode", get[Gate](l, "gate").Mode, mode)
	}
	equal(t, "lessons", l.lessons(), []string{"held", "held", "held", "held"})
}

func TestTheHistoryIsGoneAndTheProgramListsAgain(t *testing.T) {
	for name, kind := range map[string]wire.Kind{
		"an event": wire.EventPassed, "an answer": wire.Answered,
	} {
		t.Run(name, func(t *testing.T) {
			l := newLens(t, foos)
			l.event("ADDED", foo("a", "2"))
			l.event("ADDED", foo("b", "3"))
			l.wire(wire.Event{Verb: "watch", Resource: foos, Type: "ERROR", Code: 410}, kind)
			l.cut(foos, "")
			equal(t, "state", get[Watch](l, "watch/"+foos).State, "closed")
			l.stored("DELETED", foo("b", "4"))
			l.stored("ADDED", foo("c", "5"))
			l.open(foos)
			l.initial(foos, "5", foo("c", "5"), foo("a", "2"))
			equal(t, "watch", get[Watch](l, "watch/"+foos), Watch{Resource: foos, State: "open"})
			for id, want := range map[string]string{"a": "2", "b": "", "c": "5"} {
				equal(t, "cached "+id, get[Object](l, "object/"+foos+"/default/"+id).Cached, want)
			}
			l.initial(foos, "6", foo("c", "5")) // for another reason
			equal(t, "cached a", l.cached(fooID)[1], "")
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
		// The watch with the list is refused: this API server has no WatchList.
		l.wire(wire.Event{Verb: "watch", Resource: resource}, wire.RequestArrived)
		l.request("list", resource, "", nil)(200, "", nil)
		l.open(resource)
	}
	equal(t, "Foo", l.cached(fooID)[1], "2")
	equal(t, "Deployment", l.cached(deploymentID)[1], "3")
	equal(t, "other", l.cached("object/" + deployments + "/default/other")[1], "")
	equal(t, "spans", len(l.story()), 0)

	l.stored("ADDED", foo("b", "5"))
	l.request("list", foos, "", nil)(500, "", nil)
	equal(t, "a list fails", l.cached("object/" + foos + "/default/b")[1], "")
	l.request("list", foos, "", nil)(200, "", nil)
	equal(t, "b", l.cached("object/" + foos + "/default/b")[1], "5")
}

func TestAListThatIsHeldIsBehind(t *testing.T) {
	l := newLens(t)
	e := wire.Event{Verb: "watch", Resource: foos, Type: "ADDED", Object: foo("a", "2"), Initial: true}
	l.wire(e, wire.EventArrived)
	equal(t, "watch", get[Watch](l, "watch/"+foos), Watch{Resource: foos, State: "listing", Behind: 1})
	l.wire(e, wire.EventPassed)
	at := l.at
	l.log(queueing("Foo added", foo("a", "2")))
	equal(t, "end of the span", l.spans("watch")[0].End, at)
}

func TestAWatchThatBreaksIsOpenedAgain(t *testing.T) {
	l := newLens(t, foos)
	l.event("ADDED", foo("a", "2"))
	l.arrive("MODIFIED", foo("a", "3")) // it is lost
	l.cut(foos, "injected: connection cut")
	equal(t, "watch", get[Watch](l, "watch/"+foos), Watch{Resource: foos, State: "closed",
		Note: "injected: connection cut"})
	equal(t, "the lost event", get[Flight](l, "flight/2"), Flight{})
	equal(t, "its span has failed", l.spans("watch")[1].Failed, true)
	l.wait(time.Millisecond)
	equal(t, "waiting", get[Gate](l, "gate").Waiting, 0)
	l.open(foos)
	equal(t, "cache", l.cached(fooID)[1], "2")
	l.event("MODIFIED", foo("a", "3"))
	l.cut(foos, "") // the API server ends it, as always
	l.open(foos)
	equal(t, "lessons", l.lessons(), []string{"cut"})

	e := wire.Event{Verb: "watch", Resource: foos, Type: "ERROR", Code: 500}
	l.wire(e, wire.EventPassed)
	l.cut(foos, "")
	l.open(foos)
	e.Injected = true
	l.close(e)
	l.open(foos)
	equal(t, "after an error, and after a cut", l.lessons(), []string{"cut", "cut", "cut"})

	l.open(foos)
	e = wire.Event{Request: 99, Verb: "watch", Resource: foos}
	l.wire(e, wire.RequestArrived)
	l.wait(time.Millisecond)
	equal(t, "a watch that is held", get[Gate](l, "gate").Waiting, 1)
	l.wire(e, wire.Answered, wire.WatchClosed) // it never was open
	l.wait(time.Millisecond)
	equal(t, "waiting", get[Gate](l, "gate").Waiting, 0)
	l.cut(foos, "EOF") // one of two
	equal(t, "state", get[Watch](l, "watch/"+foos).State, "open")
	l.cut(foos, "EOF")
	equal(t, "state", get[Watch](l, "watch/"+foos).State, "closed")
}

func TestAWatchThatIsRefused(t *testing.T) {
	for want, e := range map[string]wire.Event{
		"403 Forbidden": {Code: 403, Reason: "Forbidden"}, "refused": {Reason: "refused"},
	} {
		l := newLens(t)
		e.Verb, e.Resource = "watch", foos
		l.wire(e, wire.RequestArrived)
		equal(t, "state", get[Watch](l, "watch/"+foos).State, "listing")
		l.wire(e, wire.Answered)
		l.cut(foos, "")
		equal(t, "watch", get[Watch](l, "watch/"+foos), Watch{Resource: foos, State: "closed", Note: want})
	}
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

func TestTheServerGoesAndComesBack(t *testing.T) {
	l := newLens(t)
	for _, state := range []string{"up", "up", "down", "down", "up"} {
		l.see(Seen{Server: &Server{State: state, Host: "127.0.0.1"}})
		equal(t, "state", get[Server](l, "server").State, state)
	}
	equal(t, "notes", l.m.numbers["note"], 2)
}
