package conformance

import (
	"fmt"
	"testing"
	"time"

	"example.com/sample-controller/test/internal/audit"
)

// inOrNowhere is a condition for requests in the namespace and for those that are in none.
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

	// Events may be written a little later than what they tell of; nothing else may.
	eventually(t, fmt.Sprintf("nothing is requested for %v", *idleTime), func() (bool, string) {
		begin := now(t)
		time.Sleep(*idleTime) // this is how long nothing may happen
		requests := program.requests(t, begin, func(r audit.Request) bool {
			return n.inOrNowhere(r) && !r.IsWatch() && r.ObjectRef.Resource != "leases"
		})
		for _, r := range requests {
			if r.What() != "create events" {
				t.Fatalf("got %d requests in %v, want none; one of them: %v", len(requests), *idleTime, r)
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
	n.fooWhen("waiting", "reports the taken name", notReadyBecause(nameTaken))
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
		// To try to create the Deployment whose name is taken changes nothing.
		return n.in(r) && r.IsWrite() && !isConflict(r) && !isAbout(r, last)
	})
	if len(writes) > 0 {
		t.Errorf("got writes, want none: %v", writes)
	}
}
