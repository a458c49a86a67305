package model

import (
	"strings"
	"testing"
	"time"
)

// TestTheStoryOfAScale tells what leads to what between `kubectl scale` and the Pod.
func TestTheStoryOfAScale(t *testing.T) {
	l := newLens(t)
	l.watch(foos)
	l.watch(deployments)
	l.event("ADDED", foo("a", "2"))
	l.event("ADDED", deployment("web", "3", "a"))
	l.log(`"Starting the workers" count=2`)
	first, firstNote := len(l.story()), len(l.texts())

	scale := "kubectl scale foo a --replicas=3"
	l.see(Seen{User: &User{Command: scale}})
	l.stored("MODIFIED", foo("a", "4"))
	l.see(Seen{User: &User{Command: scale, Ended: true}})
	l.event("MODIFIED", foo("a", "4"))
	l.log(`"Queueing Foo" foo="default/a" because="Foo updated" object="default/a" resourceVersion="4"`,
		`"Started syncing Foo" foo="default/a"`)
	answer := l.request("update", deployments, "web", deployment("web", "3", "a"))
	l.stored("MODIFIED", deployment("web", "5", "a")) // before the answer
	pass := l.arrive("MODIFIED", deployment("web", "5", "a"))
	answer(200, "", deployment("web", "5", "a"))
	pass()
	l.log(`"Queueing Foo" foo="default/a" because="Deployment updated" object="default/web" resourceVersion="5"`,
		`"Finished syncing Foo" foo="default/a"`, `"Started syncing Foo" foo="default/a"`)
	l.request("update", foos+"/status", "a", foo("a", "4"))(200, "", foo("a", "6"))
	l.stored("MODIFIED", foo("a", "6")) // after the answer
	l.event("MODIFIED", foo("a", "6"))
	l.log(`"Finished syncing Foo" foo="default/a"`)
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
		"user: another program changes Deployment web",
		"watch: MODIFIED deployments web <- user: another program changes Deployment web",
	})
	equal(t, "notes", l.texts()[firstNote:], []string{
		"You run: kubectl scale foo a --replicas=3",
		"The watch of foos brings a, which has changed.",
		"default/a goes into the queue: Foo updated.",
		"Worker 1 starts to sync default/a.",
		"The sync of default/a updates deployments web. The API server answers 200.",
		"The watch of deployments brings web, which has changed.",
		"default/a is being synced now, so it will be synced again: Deployment updated.",
		"Worker 1 has finished with default/a.",
		"Worker 1 starts to sync default/a.",
		"The sync of default/a updates foos/status a. The API server answers 200.",
		"The watch of foos brings a, which has changed.",
		"Worker 1 has finished with default/a.",
		"Another program changes Deployment web.",
		"The watch of deployments brings web, which has changed.",
	})
	for _, s := range append(l.spans("user"), l.spans("watch")...) {
		equal(t, s.Label+" has a lane and an end", s.Key == "default/a" && s.End >= s.Begin && s.End > 0, true)
	}
	user := l.spans("user")[2] // after those of the first two events
	equal(t, "the command's length", user.End-user.Begin, time.Millisecond)
	equal(t, "lessons", l.lessons(), []string{"dirty"})
}

func TestAMergedEventIsACauseToo(t *testing.T) {
	l := newLens(t)
	l.watch(foos)
	for _, version := range []string{"2", "3"} {
		l.event("MODIFIED", foo("a", version))
		l.log(`"Queueing Foo" foo="default/a" because="Foo updated" object="default/a" resourceVersion="` + version + `"`)
	}
	equal(t, "causes", len(l.spans("queue")[0].Causes), 2)
}

func TestAnEventOfNobodysObjectIsACause(t *testing.T) {
	l := newLens(t)
	l.watch(deployments)
	l.watch(foos)
	l.event("DELETED", deployment("web", "4", ""))
	equal(t, "it has no lane yet", len(l.story()), 0)
	l.log(`"Queueing Foo" foo="default/a" because="Deployment deleted" object="default/web" resourceVersion="4"`)
	equal(t, "story", l.story(), []string{"watch: DELETED deployments web",
		"queue: Deployment deleted <- watch: DELETED deployments web"})
	equal(t, "lane", l.spans("watch")[0].Key, "default/a")
}

func TestWhoHasDeleted(t *testing.T) {
	for name, test := range map[string]struct {
		requested bool
		code      int
		want      string
	}{
		"the program":                        {true, 200, "watch: DELETED deployments web <- request: delete deployments web"},
		"somebody, as the program may not":   {true, 403, "watch: DELETED deployments web <- user: another program deletes Deployment web"},
		"somebody, as nobody else has asked": {false, 0, "watch: DELETED deployments web <- user: another program deletes Deployment web"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLens(t)
			l.watch(foos)
			l.stored("ADDED", foo("a", "2"))
			l.stored("ADDED", deployment("web", "3", "a"))
			l.log(`"Started syncing Foo" foo="default/a"`)
			if test.requested {
				l.request("delete", deployments, "web", nil)(test.code, "", nil)
			}
			l.stored("DELETED", deployment("web", "4", "a"))
			l.event("DELETED", deployment("web", "4", "a"))
			contains(t, "story", l.story(), test.want)
		})
	}
}

func TestADeletionTakesTwoSteps(t *testing.T) {
	l := newLens(t)
	l.watch(foos)
	l.stored("ADDED", foo("a", "2"))
	l.stored("ADDED", deployment("web", "3", "a"))
	l.log(`"Started syncing Foo" foo="default/a"`)
	l.request("delete", deployments, "web", nil)(200, "", nil)
	deleting := deployment("web", "4", "a") // it has a finalizer
	deleting.Deleting = true
	l.stored("MODIFIED", deleting)
	l.stored("DELETED", deployment("web", "5", "a"))
	equal(t, "changes of others", len(l.spans("user")), 2) // those from before
	l.stored("ADDED", deployment("web", "6", "a"))
	l.stored("DELETED", deployment("web", "7", "a"))
	equal(t, "changes of others", len(l.spans("user")), 4)
}

func TestOnlyAWriteOfTheSameObjectMayBeTheCause(t *testing.T) {
	l := newLens(t)
	l.watch(foos)
	l.stored("ADDED", foo("a", "2"))
	l.log(`"Started syncing Foo" foo="default/a"`)
	answer := l.request("get", deployments, "web", nil)
	l.request("update", deployments, "other", deployment("other", "", "a"))
	l.stored("MODIFIED", deployment("web", "4", "a"))
	equal(t, "known at once", len(l.spans("user")), 2)
	answer(200, "", deployment("web", "5", "a"))
	l.stored("MODIFIED", deployment("web", "5", "a"))
	equal(t, "a read is no cause", len(l.spans("user")), 3)
}

func TestWhatIsNotFollowedIsKnownByTheAnswers(t *testing.T) {
	l := newLens(t)
	l.watch(foos)
	l.stored("ADDED", foo("a", "2"))
	l.request("create", deployments, "", deployment("web", "", ""))(201, "", deployment("web", "3", ""))
	equal(t, "Deployment", get[Object](l, deploymentID).ResourceVersion, "3")
	l.request("update", foos+"/status", "a", foo("a", "2"))(200, "", foo("a", "9"))
	equal(t, "Foo, which is followed", get[Object](l, fooID).ResourceVersion, "2")
}

func TestAWriteWhoseAnswerIsLostIsTheProgramsOwn(t *testing.T) {
	l := newLens(t)
	l.watch(foos)
	l.event("ADDED", foo("a", "2"))
	l.log(`"Started syncing Foo" foo="default/a"`)
	answer := l.request("create", deployments, "", deployment("web", "", "a"))
	l.stored("ADDED", deployment("web", "3", "a"))
	answer(0, "connection cut", nil)
	equal(t, "of others", len(l.spans("user")), 1) // the Foo
	l.event("ADDED", deployment("web", "3", "a"))
	contains(t, "story", l.story(), "watch: ADDED deployments web <- request: create deployments web")
}

func TestAnUpdateThatChangesNothingHasNoEvent(t *testing.T) {
	l := newLens(t)
	l.watch(foos)
	l.initial(foos, "2", foo("a", "2"))
	l.log(`"Queueing Foo" foo="default/a" because="Foo added" object="default/a" resourceVersion="2"`,
		`"Started syncing Foo" foo="default/a"`)
	l.request("update", foos, "a", foo("a", "2"))(200, "", foo("a", "2"))
	equal(t, "the first event's causes", l.spans("watch")[0].Causes, []string(nil))
}

func TestAConflictIsAWriteOfAnotherProgram(t *testing.T) {
	l := newLens(t)
	l.watch(foos)
	l.event("ADDED", foo("a", "2"))
	l.log(`"Started syncing Foo" foo="default/a"`)
	answer := l.request("update", deployments, "web", deployment("web", "3", "a"))
	l.stored("MODIFIED", deployment("web", "4", "a"))
	equal(t, "not known yet", len(l.spans("user")), 1) // the Foo
	answer(409, "Conflict", nil)
	contains(t, "story", l.story(), "user: another program changes Deployment web")
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
	l := newLens(t)
	l.watch(foos)
	for _, ended := range []bool{false, true} { // just before
		l.see(Seen{User: &User{Command: "kubectl create namespace x", Ended: ended}})
	}
	l.see(Seen{User: &User{Command: "kubectl apply -f x.yaml"}})
	l.stored("ADDED", foo("a", "2"))
	l.stored("MODIFIED", foo("a", "3")) // a command makes one change
	l.see(Seen{User: &User{Command: "kubectl apply -f x.yaml", Ended: true}})
	l.stored("ADDED", foo("b", "4"))
	l.wait(commandTail)
	l.stored("ADDED", foo("c", "5"))
	equal(t, "story", l.story(), []string{"user: kubectl apply -f x.yaml",
		"user: another program changes Foo a", "user: kubectl apply -f x.yaml",
		"user: another program creates Foo c"})
}

func TestWhichCommandHasEnded(t *testing.T) {
	l := newLens(t)
	l.watch(foos)
	l.see(Seen{User: &User{Command: "kubectl apply -k x"}})
	l.see(Seen{User: &User{Command: "kubectl apply -f x.yaml"}})
	l.see(Seen{User: &User{Command: "kubectl apply -f x.yaml", Ended: true}})
	l.wait(commandTail)
	l.stored("ADDED", foo("a", "2"))
	equal(t, "story", l.story(), []string{"user: kubectl apply -k x"})
	l.see(Seen{User: &User{Command: "kubectl apply -k x", Ended: true}})
	l.see(Seen{User: &User{Command: "kubectl apply -k x", Ended: true}}) // it was ended before
	l.wait(commandTail - 2*time.Millisecond)
	l.stored("ADDED", foo("b", "3"))
	equal(t, "story", l.story(), []string{"user: kubectl apply -k x", "user: another program creates Foo b"})
}

func TestManagedFieldsTellWhoHasWritten(t *testing.T) {
	const own, kubectl, other = "sample-controller", "kubectl-edit", "kube-controller-manager"
	for name, test := range map[string]struct {
		typ      string
		managers []string
		command  string
		age      time.Duration
		want     string
	}{
		"another one":          {"MODIFIED", []string{other}, "", time.Second, other + " changes Deployment web"},
		"not the program":      {"MODIFIED", []string{other, own}, "", 0, other + " changes Deployment web"},
		"one of two":           {"MODIFIED", []string{other, kubectl}, "", 0, "another program changes Deployment web"},
		"not the user":         {"MODIFIED", []string{other, kubectl}, "kubectl edit foo a", 0, other + " changes Deployment web"},
		"nobody":               {"MODIFIED", nil, "", 0, "another program changes Deployment web"},
		"an older one":         {"MODIFIED", []string{other}, "", time.Minute, "another program changes Deployment web"},
		"who has not erased":   {"DELETED", []string{other}, "", 0, "another program deletes Deployment web"},
		"who has not begun to": {"DELETING", []string{other}, "", 0, "another program changes Deployment web"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLens(t)
			l.watch(foos)
			l.stored("ADDED", foo("a", "2"))
			created := deployment("web", "3", "a")
			created.Managers, created.Written = []string{own}, start
			l.request("create", deployments, "", deployment("web", "", "a"))(201, "", created)
			l.stored("ADDED", created)
			if test.command != "" {
				l.see(Seen{User: &User{Command: test.command}})
			}
			changed := deployment("web", "4", "a")
			changed.Managers, changed.Written = test.managers, start.Add(l.at-test.age)
			if changed.Deleting = test.typ == "DELETING"; changed.Deleting {
				test.typ = "MODIFIED"
			}
			l.stored(test.typ, changed)
			equal(t, "label", l.spans("user")[1].Label, test.want)
			text := l.texts()[len(l.texts())-1]
			equal(t, "note", strings.ToLower(text), strings.ToLower(test.want)+".")
		})
	}
}

func TestAConflictBringsTheKeyBack(t *testing.T) {
	l := newLens(t)
	l.log(`"Queueing Foo" foo="default/a" because="Foo updated"`,
		`"Started syncing Foo" foo="default/a"`, `"Retrying after a conflict" foo="default/a" err="x"`,
		`"Finished syncing Foo" foo="default/a"`)
	l.wait(10 * time.Millisecond)
	l.log(`"Started syncing Foo" foo="default/a"`)
	equal(t, "story", l.story(), []string{
		"queue: Foo updated",
		"sync: sync by worker 1 <- queue: Foo updated",
		"delay: failed: x <- sync: sync by worker 1",
		"queue: the delay is over <- delay: failed: x",
		"sync: sync by worker 1 <- queue: the delay is over",
	})
}

func TestSpansAndNotesAreLimited(t *testing.T) {
	l := newLens(t)
	l.watch(foos)
	for range maxSpans {
		l.log(`"Started syncing Foo" foo="default/a"`, `"Finished syncing Foo" foo="default/a"`)
	}
	l.log(`"Started syncing Foo" foo="default/a"`)
	spans, notes := 0, 0
	for _, e := range l.entities {
		switch e.(type) {
		case Span:
			spans++
		case Note:
			notes++
		}
	}
	equal(t, "spans and notes", [2]int{spans, notes}, [2]int{maxSpans, maxNotes})
}

func TestAChangeIsNotLaterThanItsEvent(t *testing.T) {
	l := newLens(t)
	l.watch(foos)
	l.stored("ADDED", foo("a", "2"))
	l.event("ADDED", foo("a", "2"))
	l.arrive("DELETED", foo("a", "3"))
	l.stored("DELETED", foo("a", "3"))
	equal(t, "the change", l.spans("user")[1].Begin, l.spans("watch")[1].Begin)
}

func TestWhoHasTakenTheLabelOff(t *testing.T) {
	l := newLens(t)
	l.watch(foos)
	l.stored("ADDED", foo("a", "2"))
	l.stored("ADDED", deployment("web", "3", "a"))
	l.event("DELETED", deployment("web", "4", "a"))
	l.stored("MODIFIED", deployment("web", "4", "a"))
	l.event("ADDED", deployment("web", "5", "a"))
	l.stored("MODIFIED", deployment("web", "5", "a"))
	for _, s := range l.spans("user")[2:] {
		equal(t, "label", s.Label, "another program changes Deployment web")
	}
	equal(t, "changes", len(l.spans("user")), 4)
}
