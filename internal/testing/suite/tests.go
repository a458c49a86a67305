package suite

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/suite/audit"
)

// idleTime is how long an idle controller must request nothing.
const idleTime = 3 * time.Second

// RequestsNothing fails t unless a controller requests nothing but watches and its Lease once all
// is done. prepare makes the objects that it has to do with, and waits for them.
func RequestsNothing(t *testing.T, prepare func(*Namespace)) {
	n := NewNamespace(t)
	program := StartProgram(t, LeaderFlags, In(n))
	prepare(n)
	n.CatchUp()

	// Events may be written a little later than what they report. And on a busy machine, keys may
	// still wait in the queue that the last object has overtaken.
	what := fmt.Sprintf("the controller requests nothing for %v", idleTime)
	Eventually(t, what, func() (bool, string) {
		begin := Now(t)
		time.Sleep(idleTime) // nothing may be requested in this time
		requests := program.Requests(t, begin, func(r audit.Request) bool {
			inOrNowhere := n.Has(r) || r.ObjectRef.Namespace == ""
			return inOrNowhere && !r.IsWatch() && r.ObjectRef.Resource != "leases"
		})
		return len(requests) == 0, fmt.Sprintf("%d requests: %v", len(requests), requests)
	})
}

// RestartWritesNothing fails t if a controller writes anything when it starts with everything in
// sync. prepare makes the objects that it has to do with, and waits for them.
func RestartWritesNothing(t *testing.T, prepare func(*Namespace)) {
	n := NewNamespace(t)
	first := StartProgram(t, "", nil)
	prepare(n)
	n.CatchUp()
	must.Do(t, first.Stop())

	begin := Now(t)
	second := StartProgram(t, "", nil)
	Eventually(t, "the controller has begun to watch", func() (bool, string) {
		watches := second.Requests(t, begin, audit.Request.IsWatch)
		return len(watches) >= 2, fmt.Sprint(watches)
	})
	last := n.CatchUp()

	writes := second.Requests(t, begin, func(r audit.Request) bool {
		// A Create that is refused because the name is taken changes nothing.
		refused := r.ResponseStatus.Code == http.StatusConflict
		return n.Has(r) && r.IsWrite() && !refused && !isAbout(r, last)
	})
	if len(writes) > 0 {
		t.Errorf("everything was in sync, but the restarted controller wrote: %v", writes)
	}
}

// FinishesItsWork fails t if a controller leaves something half done when it is stopped while it
// has that many objects to work on.
func FinishesItsWork(t *testing.T, objects int) {
	n := NewNamespace(t)
	names := make([]string, objects)
	for i := range names {
		names[i] = fmt.Sprintf("web-%d", i)
		config.Create(n, names[i])
	}
	begin := Now(t)
	first := StartProgram(t, "", nil)
	Eventually(t, "the controller has begun to write", func() (bool, string) {
		return len(first.Requests(t, begin, audit.Request.IsWrite)) > 0, "nothing written"
	})

	must.Do(t, first.Stop())

	failed := first.Requests(t, begin, func(r audit.Request) bool {
		return n.Has(r) && r.ResponseStatus.Code >= 400
	})
	if len(failed) > 0 {
		t.Errorf("requests of the controller failed before it ended: %v", failed)
	}
	StartProgram(t, "", nil)
	for _, name := range names {
		config.Await(n, name)
	}
}
