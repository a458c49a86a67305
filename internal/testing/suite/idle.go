package suite

import (
	"fmt"
	"testing"
	"time"

	"example.com/sample-controller/internal/testing/suite/audit"
)

// RequestsNothing fails t unless a controller requests nothing but watches and its Lease once all
// is done. prepare makes the objects that it has to do with, and waits for them.
func RequestsNothing(t *testing.T, prepare func(*Namespace)) {
	n := NewNamespace(t)
	program := StartProgram(t, LeaderFlags, In(n))
	prepare(n)
	n.CatchUp()

	// Only Events may be written a little later than what they report.
	what := fmt.Sprintf("the controller requests nothing for %v", idleTime)
	Eventually(t, what, func() (bool, string) {
		begin := Now(t)
		time.Sleep(idleTime) // nothing may be requested in this time
		requests := program.Requests(t, begin, func(r audit.Request) bool {
			inOrNowhere := n.Has(r) || r.ObjectRef.Namespace == ""
			return inOrNowhere && !r.IsWatch() && r.ObjectRef.Resource != "leases"
		})
		for _, r := range requests {
			if r.What() != "create events" {
				t.Fatalf("nothing changed for %v, but the controller made %d requests; one of them: %v",
					idleTime, len(requests), r)
			}
		}
		return len(requests) == 0, fmt.Sprintf("%d Events", len(requests))
	})
}

// RestartWritesNothing fails t if a controller writes anything when it starts with everything in
// sync. prepare makes the objects that it has to do with, and waits for them.
func RestartWritesNothing(t *testing.T, prepare func(*Namespace)) {
	n := NewNamespace(t)
	first := StartProgram(t, "", nil)
	prepare(n)
	n.CatchUp()
	StopProgram(t, first)

	begin := Now(t)
	second := StartProgram(t, "", nil)
	Eventually(t, "the controller has begun to watch", func() (bool, string) {
		watches := second.Requests(t, begin, audit.Request.IsWatch)
		return len(watches) >= 2, fmt.Sprint(watches)
	})
	last := n.CatchUp()

	writes := second.Requests(t, begin, func(r audit.Request) bool {
		// A Create that is refused because the name is taken changes nothing.
		return n.Has(r) && r.IsWrite() && !isConflict(r) && !isAbout(r, last)
	})
	if len(writes) > 0 {
		t.Errorf("everything was in sync, but the restarted controller wrote: %v", writes)
	}
}
