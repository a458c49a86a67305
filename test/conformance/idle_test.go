package conformance

import (
	"fmt"
	"testing"
	"time"

	"example.com/sample-controller/test/internal/audit"
)

// inOrNowhere reports whether r is about an object in the namespace, or in no namespace.
func (n *namespace) inOrNowhere(r audit.Request) bool {
	return n.in(r) || r.ObjectRef.Namespace == ""
}

func TestNothingIsRequestedWhileNothingChanges(t *testing.T) {
	behaviour(t, 13)
	n := newNamespace(t)
	program := startProgram(t, *leaderFlags, inNamespace(n))
	for i := range *idleFoos {
		name := fmt.Sprintf("web-%d", i)
		n.createFoo(newFoo(name, name, 1))
	}
	for i := range *idleFoos {
		n.fooWhen(fmt.Sprintf("web-%d", i), "is Ready", isReady)
	}
	n.catchUp()

	// Only Events may be written a little later than what they report.
	what := fmt.Sprintf("the controller requests nothing for %v", *idleTime)
	eventually(t, what, func() (bool, string) {
		begin := now(t)
		time.Sleep(*idleTime) // nothing may be requested in this time
		requests := program.requests(t, begin, func(r audit.Request) bool {
			return n.inOrNowhere(r) && !r.IsWatch() && r.ObjectRef.Resource != "leases"
		})
		for _, r := range requests {
			if r.What() != "create events" {
				t.Fatalf("nothing changed for %v, but the controller made %d requests; one of them: %v",
					*idleTime, len(requests), r)
			}
		}
		return len(requests) == 0, fmt.Sprintf("%d Events", len(requests))
	})
}

func TestRestartWritesNothing(t *testing.T) {
	behaviour(t, 14)
	n := newNamespace(t)
	first := startProgram(t, "", nil)
	n.createReadyFoo(newFoo("web", "web", 2))
	n.createReadyFoo(newFoo("renamed", "old", 1))
	n.kubectl("patch", "foo/renamed", "--type=merge", `--patch={"spec":{"deploymentName":"new"}}`)
	n.fooWhen("renamed", "is Ready", isReady)
	n.deploymentGone("old")
	n.kubectl("create", "deployment", "foreign", "--image=example.com/foreign")
	n.createFoo(newFoo("waiting", "foreign", 1))
	n.fooWhen("waiting", "is not Ready: "+nameTaken, notReadyBecause(nameTaken))
	n.catchUp()
	stopProgram(t, first)

	begin := now(t)
	second := startProgram(t, "", nil)
	eventually(t, "the controller has begun to watch", func() (bool, string) {
		watches := second.requests(t, begin, audit.Request.IsWatch)
		return len(watches) >= 2, fmt.Sprint(watches)
	})
	last := n.catchUp()

	writes := second.requests(t, begin, func(r audit.Request) bool {
		// A Create that is refused because the name is taken changes nothing.
		return n.in(r) && r.IsWrite() && !isConflict(r) && !isAbout(r, last)
	})
	if len(writes) > 0 {
		t.Errorf("everything was in sync, but the restarted controller wrote: %v", writes)
	}
}
