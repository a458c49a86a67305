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

const (
	// leaseDuration is that of -leader-flags.
	leaseDuration = 8 * time.Second
	// takeover is how long a standby may take to notice that the Lease is free: it looks every 500 ms.
	takeover = 2 * time.Second
)

// inNamespace returns a change of the kubeconfig that makes n its namespace, and so, by default,
// the namespace of the Lease.
func inNamespace(n *namespace) func(*clientcmdapi.Config) {
	return func(config *clientcmdapi.Config) {
		for _, context := range config.Contexts {
			context.Namespace = n.name
		}
	}
}

// lease returns the one Lease in the namespace.
func (n *namespace) lease() *coordinationv1.Lease {
	n.t.Helper()
	leases, err := kubeClient.CoordinationV1().Leases(n.name).List(
		n.t.Context(), metav1.ListOptions{})
	if err != nil {
		n.t.Fatal(err)
	}
	if len(leases.Items) != 1 {
		n.t.Fatalf("got %d Leases in the namespace, want 1", len(leases.Items))
	}
	return &leases.Items[0]
}

// startLeader starts a program that leads.
func startLeader(t *testing.T, n *namespace) *program {
	t.Helper()
	leader := startProgram(t, *leaderFlags, inNamespace(n))
	n.catchUp()
	return leader
}

// startStandby starts a program that waits for the Lease of another.
func startStandby(t *testing.T, n *namespace) *program {
	t.Helper()
	begin := now(t)
	standby := startProgram(t, *leaderFlags, inNamespace(n))
	eventually(t, "the standby has looked at the Lease", func() (bool, string) {
		looks := standby.requests(t, begin, func(r audit.Request) bool {
			return r.ObjectRef.Resource == "leases" && r.Verb == "get"
		})
		return len(looks) >= 2, fmt.Sprint(looks)
	})
	return standby
}

// works waits until a new Foo has its Deployment.
func (n *namespace) works(name string) {
	n.t.Helper()
	n.createFoo(newFoo(name, name, 1))
	n.deploymentWhen(name, "exists", exists)
}

// holdsLease waits until p has written the Lease since begin, and returns when that was: the first and
// the last time, by the clock of the API server.
func (p *program) holdsLease(t *testing.T, begin audit.Mark) (first, last time.Time) {
	t.Helper()
	eventually(t, "the standby has taken the Lease", func() (bool, string) {
		writes := p.requests(t, begin, func(r audit.Request) bool {
			return r.ObjectRef.Resource == "leases" && r.IsWrite() && r.Succeeded()
		})
		if len(writes) > 0 {
			first, last = writes[0].StageTimestamp, writes[len(writes)-1].StageTimestamp
		}
		return len(writes) > 0, "it has not written it"
	})
	return first, last
}

// expectTakeover waits until standby leads in place of leader, which has ended, and fails t if that
// took longer than limit.
func expectTakeover(
	t *testing.T, begin audit.Mark, leader, standby *program, limit time.Duration,
) {
	t.Helper()
	_, last := leader.holdsLease(t, begin)
	first, _ := standby.holdsLease(t, begin)
	if took := first.Sub(last); took > limit {
		t.Errorf("the standby took the Lease %v after the leader wrote it for the last time, want "+
			"within %v", took, limit)
	}
}

func TestStoppedLeaderFreesTheLeaseAtOnce(t *testing.T) {
	behaviour(t, 17)
	n := newNamespace(t)
	leader := startLeader(t, n)
	if holder := n.lease().Spec.HolderIdentity; holder == nil || *holder == "" {
		t.Fatal("expected that the Lease has a holder while the controller works")
	}

	stopProgram(t, leader)

	if holder := n.lease().Spec.HolderIdentity; holder != nil && *holder != "" {
		t.Errorf("got holder %q of the Lease, want none", *holder)
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
		t.Errorf("expected that the standby writes nothing, got %v", writes)
	}

	stopProgram(t, leader)

	expectTakeover(t, begin, leader, standby, takeover)
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

	time.Sleep(leaseDuration) // until then, the Lease is the leader's
	expectTakeover(t, begin, leader, standby, leaseDuration+takeover)
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
		t.Errorf("got failed requests: %v", failed)
	}
	startProgram(t, "", nil)
	for i := range foos {
		n.fooWhen(fmt.Sprintf("web-%d", i), "is Ready after the restart", isReady)
	}
}
