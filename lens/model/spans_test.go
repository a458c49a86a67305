package model

import (
	"strings"
	"testing"
	"time"
)

// TestTheStoryOfAScale tells what leads to what between `kubectl scale` and the Pod.
func TestTheStoryOfAScale(t *testing.T) {
	l := newLens(t, foos, deployments)
	l.event("ADDED", foo("a", "2"))
	l.event("ADDED", deployment("web", "3", "a"))
	first := len(l.story())

	scale := "kubectl scale foo a --replicas=3"
	l.user(scale, false)
	l.stored("MODIFIED", foo("a", "4"))
	l.user(scale, true)
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
		"user: kubectl scale foo a --replicas=3",
		"watch: MODIFIED foos a <- user: kubectl scale foo a --replicas=3",
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
		"user: another program changes Deployment web",
		"watch: MODIFIED deployments web <- user: another program changes Deployment web",
	})
	for _, s := range append(l.spans("user"), l.spans("watch")...) {
		equal(t, s.Label+" has a lane and an end", s.Key == "default/a" && s.End >= s.Begin && s.End > 0, true)
	}
	texts := strings.Join(l.texts(), "\n")
	if strings.Index(texts, "brings web, which has changed") < strings.Index(texts, "updates deployments web") {
		t.Errorf("an effect stands before its cause:\n%s", texts)
	}
	user := l.spans("user")[2] // after those of the first two events
	equal(t, "the command's length", user.End-user.Begin, time.Millisecond)
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
		"user: another program changes Foo a", "watch: MODIFIED foos a <- user: another program changes Foo a"})
	equal(t, "lane", l.spans("watch")[0].Key, "default/a")
}

func TestWhoHasWritten(t *testing.T) {
	const byOther = "watch: MODIFIED deployments web <- user: another program changes Deployment web"
	deleting := deployment("web", "4", "a")
	deleting.Deleting = true
	newer := deployment("web", "4", "a")
	for name, test := range map[string]struct {
		do   func(*lens)
		want string // in the story; else, no change is of another program
	}{
		"deleted by the program": {func(l *lens) {
			l.request("delete", deployments, "web", nil)(200, "", nil)
			l.stored("MODIFIED", deleting) // it has a finalizer
			l.stored("DELETED", deployment("web", "5", "a"))
		}, ""},
		"deleted by somebody, as the program may not": {func(l *lens) {
			l.request("delete", deployments, "web", nil)(403, "", nil)
			l.stored("DELETED", newer)
		}, "user: another program deletes Deployment web"},
		"deleted again": {func(l *lens) {
			l.request("delete", deployments, "web", nil)(200, "", nil)
			l.stored("DELETED", newer)
			l.stored("ADDED", deployment("web", "6", "a"))
			l.stored("DELETED", deployment("web", "7", "a"))
		}, "user: another program deletes Deployment web"},
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
		}, "watch: ADDED deployments web <- user: another program creates Deployment web"},
		"the label is taken off": {func(l *lens) {
			l.event("DELETED", newer)
			l.stored("MODIFIED", newer)
		}, "user: another program changes Deployment web"},
		"the label is put on": {func(l *lens) { l.event("ADDED", newer) },
			"watch: ADDED deployments web <- user: another program changes Deployment web"},
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

func TestWhoseCommandIsIt(t *testing.T) {
	for command, want := range map[string]bool{
		"kubectl delete deployment web":              true,
		"kubectl delete deploy/web":                  true,
		"kubectl label deployments.apps/web a-":      true,
		"kubectl scale foo web --replicas=3":         false, // the Deployment controller's
		"kubectl delete deployment web2":             false,
		"kubectl apply -f artifacts/examples/x.yaml": false,
	} {
		equal(t, command, names(command, deployment("web", "1", "a")), want)
	}
	const folder, file = "kubectl apply -k x", "kubectl apply -f x.yaml"
	l := newLens(t, foos)
	l.user("kubectl create namespace x", false)
	l.user("kubectl create namespace x", true)
	l.user(file, false)
	l.stored("ADDED", foo("a", "2"))
	l.stored("MODIFIED", foo("a", "3")) // a command makes one change
	l.user(file, true)
	l.stored("ADDED", foo("b", "4"))
	l.user(folder, false)
	l.wait(commandTail)
	l.stored("ADDED", foo("c", "5"))
	l.user(folder, true)
	l.user(folder, true) // it was ended before
	l.wait(commandTail - 2*time.Millisecond)
	l.stored("ADDED", foo("d", "6"))
	equal(t, "story", l.story(), []string{"user: " + file, "user: another program changes Foo a",
		"user: " + file, "user: " + folder, "user: another program creates Foo d"})
}

func TestManagedFieldsTellWhoHasWritten(t *testing.T) {
	const own, kubectl, other = "sample-controller", "kubectl-edit", "kube-controller-manager"
	for name, test := range map[string]struct {
		managers []string
		command  string
		age      time.Duration
		deleting bool
		want     string
	}{
		"another one":          {[]string{other}, "", time.Second, false, other},
		"not the program":      {[]string{other, own}, "", 0, false, other},
		"one of two":           {[]string{other, kubectl}, "", 0, false, "another program"},
		"not the user":         {[]string{other, kubectl}, "kubectl edit foo a", 0, false, other},
		"nobody":               {nil, "", 0, false, "another program"},
		"an older one":         {[]string{other}, "", time.Minute, false, "another program"},
		"who has not begun to": {[]string{other}, "", 0, true, "another program"},
	} {
		l := newSync(t)
		created := deployment("new", "4", "a")
		created.Managers, created.Written = []string{own}, start
		l.request("create", deployments, "", deployment("new", "", "a"))(201, "", created)
		if test.command != "" {
			l.user(test.command, false)
		}
		changed := deployment("web", "5", "a")
		changed.Managers, changed.Written = test.managers, start.Add(l.at-test.age)
		changed.Deleting = test.deleting
		l.stored("MODIFIED", changed)
		want := test.want + " changes Deployment web"
		equal(t, name, l.spans("user")[2].Label, want)
		text := l.texts()[len(l.texts())-1]
		equal(t, name, strings.ToLower(text), strings.ToLower(want)+".")
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
