package model

import (
	"strings"
	"testing"
	"time"
)

// TestTheStoryOfAScale tells what leads to what between a change of the Foo and the Pod.
func TestTheStoryOfAScale(t *testing.T) {
	l := newLens(t, foos, deployments)
	l.event("ADDED", foo("a", "2"))
	l.event("ADDED", deployment("web", "3", "a"))
	first := len(l.story())

	l.stored("MODIFIED", foo("a", "4"))
	l.event("MODIFIED", foo("a", "4"))
	l.log(queueing("Foo updated", foo("a", "4")), started)
	answer := l.request("update", deployments, "web", deployment("web", "3", "a"))
	l.stored("MODIFIED", deployment("web", "5", "a")) // before the answer
	pass := l.arrive("MODIFIED", deployment("web", "5", "a"))
	pass()
	answer(200, "", deployment("web", "5", "a"))
	l.log(queueing("Deployment updated", deployment("web", "5", "a")), finished, started)
	l.request("update", foos+"/status", "a", foo("a", "4"))(200, "", foo("a", "6"))
	l.stored("MODIFIED", foo("a", "6")) // after the answer
	l.event("MODIFIED", foo("a", "6"))
	l.log(`"Retrying after a conflict" foo="default/a" err="x"`, finished)
	l.wait(10 * time.Millisecond)
	l.log(started)
	l.stored("MODIFIED", deployment("web", "7", "a")) // the Deployment controller
	l.event("MODIFIED", deployment("web", "7", "a"))

	equal(t, "story", l.story()[first:], []string{
		"user: Another program changes Foo a",
		"watch: MODIFIED foos a <- user: Another program changes Foo a",
		"queue: Foo updated <- watch: MODIFIED foos a",
		"sync: sync by worker 1 <- queue: Foo updated",
		"request: update deployments web <- sync: sync by worker 1",
		"watch: MODIFIED deployments web <- request: update deployments web",
		"queue: Deployment updated <- watch: MODIFIED deployments web",
		"sync: sync by worker 1 <- queue: Deployment updated",
		"request: update foos/status a <- sync: sync by worker 1",
		"watch: MODIFIED foos a <- request: update foos/status a",
		"delay: failed: x <- sync: sync by worker 1",
		"queue: the delay is over <- delay: failed: x",
		"sync: sync by worker 1 <- queue: the delay is over",
		"user: Another program changes Deployment web",
		"watch: MODIFIED deployments web <- user: Another program changes Deployment web",
	})
	for _, s := range append(l.spans("user"), l.spans("watch")...) {
		equal(t, s.Label+" has a lane and an end", s.Key == "default/a" && s.End >= s.Begin && s.End > 0, true)
	}
	texts := strings.Join(l.texts(), "\n")
	if strings.Index(texts, "brings web, which has changed") < strings.Index(texts, "updates deployments web") {
		t.Errorf("an effect stands before its cause:\n%s", texts)
	}
	equal(t, "lessons", l.lessons(), []string{"dirty", "backoff"})
}

func TestEventsAreCauses(t *testing.T) {
	l := newLens(t, foos)
	gone := deployment("web", "4", "")
	l.event("DELETED", gone)
	equal(t, "it has no lane yet", len(l.story()), 0)
	l.log(queueing("Deployment deleted", gone))
	l.event("MODIFIED", foo("a", "5"))
	l.log(queueing("Foo updated", foo("a", "5"))) // merged
	equal(t, "story", l.story(), []string{"watch: DELETED deployments web",
		"queue: Deployment deleted <- watch: DELETED deployments web <- watch: MODIFIED foos a",
		"user: Another program changes Foo a", "watch: MODIFIED foos a <- user: Another program changes Foo a"})
	equal(t, "lane", l.spans("watch")[0].Key, "default/a")
}

func TestWhoHasWritten(t *testing.T) {
	const byOther = "watch: MODIFIED deployments web <- user: Another program changes Deployment web"
	deleting := deployment("web", "4", "a")
	deleting.Deleting = true
	newer := deployment("web", "4", "a")
	for name, test := range map[string]struct {
		do   func(*lens)
		want string // in the story; else, no change is of Another program
	}{
		"deleted by the program": {func(l *lens) {
			l.request("delete", deployments, "web", nil)(200, "", nil)
			l.stored("MODIFIED", deleting) // it has a finalizer
			l.stored("DELETED", deployment("web", "5", "a"))
		}, ""},
		"deleted by somebody, as the program may not": {func(l *lens) {
			l.request("delete", deployments, "web", nil)(403, "", nil)
			l.stored("DELETED", newer)
		}, "user: Another program deletes Deployment web"},
		"deleted again": {func(l *lens) {
			l.request("delete", deployments, "web", nil)(200, "", nil)
			l.stored("DELETED", newer)
			l.stored("ADDED", deployment("web", "6", "a"))
			l.stored("DELETED", deployment("web", "7", "a"))
		}, "user: Another program deletes Deployment web"},
		"a read and another object's write": {func(l *lens) {
			l.request("get", deployments, "web", nil)
			l.request("update", deployments, "other", deployment("other", "", "a"))
			l.stored("MODIFIED", newer)
			l.event("MODIFIED", newer)
		}, byOther},
		"an answer that is lost": {func(l *lens) {
			answer := l.request("update", deployments, "web", newer)
			l.stored("MODIFIED", newer)
			answer(0, "connection cut", nil)
		}, ""},
		"a conflict": {func(l *lens) {
			answer := l.request("update", deployments, "web", newer)
			l.stored("MODIFIED", newer)
			equal(t, "not known yet", len(l.spans("user")), 2)
			answer(409, "Conflict", nil)
			l.event("MODIFIED", newer)
		}, byOther},
		"an update that changes nothing": {func(l *lens) {
			old := deployment("web", "3", "a")
			l.request("update", deployments, "web", old)(200, "", old)
			l.event("ADDED", old)
		}, "watch: ADDED deployments web <- user: Another program creates Deployment web"},
		"the label is taken off": {func(l *lens) {
			l.event("DELETED", newer)
			l.stored("MODIFIED", newer)
		}, "user: Another program changes Deployment web"},
		"the label is put on": {func(l *lens) { l.event("ADDED", newer) },
			"watch: ADDED deployments web <- user: Another program changes Deployment web"},
	} {
		l := newSync(t)
		test.do(l)
		if test.want == "" {
			equal(t, name+": changes of others", len(l.spans("user")), 2) // those from before
		} else {
			contains(t, name, l.story(), test.want)
		}
	}
}

func TestWhatIsNotFollowedIsKnownByTheAnswers(t *testing.T) {
	l := newLens(t, foos)
	l.stored("ADDED", foo("a", "2"))
	l.request("create", deployments, "", deployment("web", "", ""))(201, "", deployment("web", "3", ""))
	equal(t, "Deployment", l.cached(deploymentID)[0], "3")
	l.request("update", foos+"/status", "a", foo("a", "2"))(200, "", foo("a", "9"))
	equal(t, "Foo, which is followed", l.cached(fooID)[0], "2")
}

func TestManagedFieldsTellWhoHasWritten(t *testing.T) {
	const own, kubectl, other = "sample-controller", "kubectl-edit", "kube-controller-manager"
	for name, test := range map[string]struct {
		managers []string
		age      time.Duration
		deleting bool
		want     string
	}{
		"another one":          {[]string{other}, time.Second, false, other},
		"not the program":      {[]string{other, own}, 0, false, other},
		"one of two":           {[]string{other, kubectl}, 0, false, "Another program"},
		"nobody":               {nil, 0, false, "Another program"},
		"an older one":         {[]string{other}, time.Minute, false, "Another program"},
		"who has not begun to": {[]string{other}, 0, true, "Another program"},
	} {
		l := newSync(t)
		created := deployment("new", "4", "a")
		created.Managers, created.Written = []string{own}, start
		l.request("create", deployments, "", deployment("new", "", "a"))(201, "", created)
		changed := deployment("web", "5", "a")
		changed.Managers, changed.Written = test.managers, start.Add(l.at-test.age)
		changed.Deleting = test.deleting
		l.stored("MODIFIED", changed)
		want := test.want + " changes Deployment web"
		equal(t, name, l.spans("user")[2].Label, want)
		contains(t, name, l.texts(), want+".")
	}
}

func TestSpansAndNotesAreLimited(t *testing.T) {
	l := newLens(t)
	for range maxSpans + 1 {
		l.log(started, finished)
	}
	equal(t, "spans", len(l.spans("sync")), maxSpans)
	equal(t, "lessons", len(l.lessons()) <= maxNotes, true)
	equal(t, "the oldest note", get[Note](l, "note/1"), Note{})
}

func TestAChangeIsNotLaterThanItsEvent(t *testing.T) {
	l := newLens(t, foos)
	l.stored("ADDED", foo("a", "2"))
	l.event("ADDED", foo("a", "2"))
	l.arrive("DELETED", foo("a", "3"))
	l.stored("DELETED", foo("a", "3"))
	equal(t, "the change", l.spans("user")[1].Begin, l.spans("watch")[1].Begin)
}
