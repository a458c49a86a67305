package suite

import (
	"fmt"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/suite/audit"
)

// leaseDuration is the duration of the Lease in -leader-flags.
const leaseDuration = 8 * time.Second

// lease returns the only Lease in the namespace.
func (n *Namespace) lease() *coordinationv1.Lease {
	n.T.Helper()
	leases := must.Get(Kube.CoordinationV1().Leases(n.Name).List(
		n.T.Context(), metav1.ListOptions{}))(n.T)
	if len(leases.Items) != 1 {
		n.T.Fatalf("the namespace has %d Leases, want 1; check -leader-flags", len(leases.Items))
	}
	return &leases.Items[0]
}

// startLeader starts a program and waits until it works, as the leader.
func startLeader(t *testing.T, n *Namespace) *Program {
	t.Helper()
	leader := StartProgram(t, LeaderFlags, In(n))
	n.CatchUp()
	return leader
}

// startStandby starts a program and waits until it has read the Lease, which another holds, twice.
func startStandby(t *testing.T, n *Namespace) *Program {
	t.Helper()
	begin := Now(t)
	standby := StartProgram(t, LeaderFlags, In(n))
	Eventually(t, "the standby has read the Lease twice", func() (bool, string) {
		looks := standby.Requests(t, begin, func(r audit.Request) bool {
			return r.ObjectRef.Resource == "leases" && r.Verb == "get"
		})
		return len(looks) >= 2, fmt.Sprint(looks)
	})
	return standby
}

// leaseRequests returns the successful requests of p for the Lease since begin.
func (p *Program) leaseRequests(t *testing.T, begin audit.Mark) (reads, writes []audit.Request) {
	t.Helper()
	all := p.Requests(t, begin, func(r audit.Request) bool {
		return r.ObjectRef.Resource == "leases" && r.Succeeded()
	})
	for _, r := range all {
		if r.IsWrite() {
			writes = append(writes, r)
		} else {
			reads = append(reads, r)
		}
	}
	return reads, writes
}

// expectTakeover waits until standby has taken the Lease of leader, which has ended. It fails t if
// standby read the free Lease more than twice. The Lease is free when rest has passed since standby
// read the leader's last write. A standby reads it every 0.5 to 1.1 s. Counting the reads in the
// audit log gives the same result on a busy machine.
func expectTakeover(t *testing.T, begin audit.Mark, leader, standby *Program, rest time.Duration) {
	t.Helper()
	Eventually(t, "the standby has taken the Lease", func() (bool, string) {
		reads, writes := standby.leaseRequests(t, begin)
		return len(writes) > 0, fmt.Sprintf("it has read the Lease %d times", len(reads))
	})
	_, before := leader.leaseRequests(t, begin)
	reads, writes := standby.leaseRequests(t, begin)
	over := before[len(before)-1].StageTimestamp
	looks := 0
	for _, look := range reads {
		at := look.StageTimestamp
		if rest > 0 && at.After(over) {
			over, rest = at.Add(rest), 0
		} else if at.After(over) && at.Before(writes[0].StageTimestamp) {
			looks++
		}
	}
	if looks > 2 {
		t.Errorf("the standby read the free Lease %d times before it took it, want at most 2", looks)
	}
}

// StoppedLeaderFreesTheLease fails t unless a leader that is stopped releases its Lease.
func StoppedLeaderFreesTheLease(t *testing.T) {
	n := NewNamespace(t)
	leader := startLeader(t, n)
	if holder := n.lease().Spec.HolderIdentity; holder == nil || *holder == "" {
		t.Fatal("the controller works, but the Lease has no holder")
	}

	StopProgram(t, leader)

	if holder := n.lease().Spec.HolderIdentity; holder != nil && *holder != "" {
		t.Errorf("the stopped leader still holds the Lease, as %q; make it release the Lease", *holder)
	}
}

// StandbyTakesOverFromAStoppedLeader fails t unless a standby works at once when the leader is
// stopped, and does not write before.
func StandbyTakesOverFromAStoppedLeader(t *testing.T) {
	n := NewNamespace(t)
	begin := Now(t)
	leader := startLeader(t, n)
	standby := startStandby(t, n)
	n.CatchUp()
	writes := standby.Requests(t, begin, func(r audit.Request) bool { return n.Has(r) && r.IsWrite() })
	if len(writes) > 0 {
		t.Errorf("the standby wrote although it was not the leader: %v", writes)
	}

	StopProgram(t, leader)

	expectTakeover(t, begin, leader, standby, 0)
	n.CatchUp()
	StopProgram(t, standby)
}

// StandbyTakesOverFromAKilledLeader fails t unless a standby works as soon as the Lease of a leader
// that was killed has expired.
func StandbyTakesOverFromAKilledLeader(t *testing.T) {
	n := NewNamespace(t)
	begin := Now(t)
	leader := startLeader(t, n)
	standby := startStandby(t, n)

	leader.Kill()

	time.Sleep(leaseDuration) // until then, the Lease is not free
	expectTakeover(t, begin, leader, standby, leaseDuration)
	n.CatchUp()
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

	StopProgram(t, first)

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
