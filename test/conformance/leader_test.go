package conformance

import (
	"fmt"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"example.com/sample-controller/test/internal/audit"
)

// leaseDuration is the duration of the Lease in -leader-flags.
const leaseDuration = 8 * time.Second

// inNamespace returns a function that makes n the namespace of the kubeconfig, and so, by default,
// of the Lease.
func inNamespace(n *namespace) func(*clientcmdapi.Config) {
	return func(config *clientcmdapi.Config) {
		for _, context := range config.Contexts {
			context.Namespace = n.name
		}
	}
}

// lease returns the only Lease in the namespace.
func (n *namespace) lease() *coordinationv1.Lease {
	n.t.Helper()
	leases, err := kubeClient.CoordinationV1().Leases(n.name).List(
		n.t.Context(), metav1.ListOptions{})
	if err != nil {
		n.t.Fatal(err)
	}
	if len(leases.Items) != 1 {
		n.t.Fatalf("the namespace has %d Leases, want 1; check -leader-flags", len(leases.Items))
	}
	return &leases.Items[0]
}

// startLeader starts a program and waits until it works, as the leader.
func startLeader(t *testing.T, n *namespace) *program {
	t.Helper()
	leader := startProgram(t, *leaderFlags, inNamespace(n))
	n.catchUp()
	return leader
}

// startStandby starts a program and waits until it has read the Lease, which another holds, twice.
func startStandby(t *testing.T, n *namespace) *program {
	t.Helper()
	begin := now(t)
	standby := startProgram(t, *leaderFlags, inNamespace(n))
	eventually(t, "the standby has read the Lease twice", func() (bool, string) {
		looks := standby.requests(t, begin, func(r audit.Request) bool {
			return r.ObjectRef.Resource == "leases" && r.Verb == "get"
		})
		return len(looks) >= 2, fmt.Sprint(looks)
	})
	return standby
}

// works creates a Foo and waits for its Deployment.
func (n *namespace) works(name string) {
	n.t.Helper()
	n.createFoo(newFoo(name, name, 1))
	n.deploymentWhen(name, "exists", exists)
}

// leaseRequests returns the successful requests of p for the Lease since begin.
func (p *program) leaseRequests(t *testing.T, begin audit.Mark) (reads, writes []audit.Request) {
	t.Helper()
	all := p.requests(t, begin, func(r audit.Request) bool {
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
func expectTakeover(
	t *testing.T, begin audit.Mark, leader, standby *program, rest time.Duration,
) {
	t.Helper()
	eventually(t, "the standby has taken the Lease", func() (bool, string) {
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

func TestStoppedLeaderFreesTheLeaseAtOnce(t *testing.T) {
	behaviour(t, 17)
	n := newNamespace(t)
	leader := startLeader(t, n)
	if holder := n.lease().Spec.HolderIdentity; holder == nil || *holder == "" {
		t.Fatal("the controller works, but the Lease has no holder")
	}

	stopProgram(t, leader)

	if holder := n.lease().Spec.HolderIdentity; holder != nil && *holder != "" {
		t.Errorf("the stopped leader still holds the Lease, as %q; make it release the Lease", *holder)
	}
}

func TestStandbyTakesOverFromAStoppedLeader(t *testing.T) {
	behaviour(t, 17)
	n := newNamespace(t)
	begin := now(t)
	leader := startLeader(t, n)
	standby := startStandby(t, n)
	n.works("before")
	writes := standby.requests(t, begin, func(r audit.Request) bool { return n.in(r) && r.IsWrite() })
	if len(writes) > 0 {
		t.Errorf("the standby wrote although it was not the leader: %v", writes)
	}

	stopProgram(t, leader)

	expectTakeover(t, begin, leader, standby, 0)
	n.works("after")
	stopProgram(t, standby)
}

func TestStandbyTakesOverFromAKilledLeader(t *testing.T) {
	behaviour(t, 17)
	n := newNamespace(t)
	begin := now(t)
	leader := startLeader(t, n)
	standby := startStandby(t, n)

	leader.Kill()

	time.Sleep(leaseDuration) // until then, the Lease is not free
	expectTakeover(t, begin, leader, standby, leaseDuration)
	n.works("after")
}

func TestProgramStoppedInABurstLeavesNothingHalfDone(t *testing.T) {
	behaviour(t, 17)
	const foos = 200
	n := newNamespace(t)
	for i := range foos {
		name := fmt.Sprintf("web-%d", i)
		n.createFoo(newFoo(name, name, 0))
	}
	begin := now(t)
	first := startProgram(t, "", nil)
	eventually(t, "the controller has begun to write", func() (bool, string) {
		return len(first.requests(t, begin, audit.Request.IsWrite)) > 0, "nothing written"
	})

	stopProgram(t, first)

	failed := first.requests(t, begin, func(r audit.Request) bool {
		return n.in(r) && r.ResponseStatus.Code >= 400
	})
	if len(failed) > 0 {
		t.Errorf("requests of the controller failed before it ended: %v", failed)
	}
	startProgram(t, "", nil)
	for i := range foos {
		n.fooWhen(fmt.Sprintf("web-%d", i), "is Ready after the restart", isReady)
	}
}
