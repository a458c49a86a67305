package conformance

import (
	"fmt"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const (
	// leaseDuration is that of -leader-flags; a standby looks a little later.
	leaseDuration = 3 * time.Second
	slack         = 2 * time.Second
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
		looks := standby.requests(t, begin, func(r request) bool {
			return r.ObjectRef.Resource == "leases" && r.Verb == "get"
		})
		return len(looks) >= 2, fmt.Sprint(looks)
	})
	return standby
}

// works waits until a new Foo has its Deployment.
func (n *namespace) works(limit time.Duration, name string) {
	n.t.Helper()
	n.createFoo(newFoo(name, name, 1))
	within(n.t, limit, "a new Foo has its Deployment", func() (bool, string) {
		_, err := n.deployments.Get(n.t.Context(), name, metav1.GetOptions{})
		return err == nil, fmt.Sprint(err)
	})
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
	leader := startLeader(t, n)
	standby := startStandby(t, n)
	n.works(slack, "before")
	writes := standby.requests(t, 0, func(r request) bool { return n.in(r) && r.isWrite() })
	if len(writes) > 0 {
		t.Errorf("expected that the standby writes nothing, got %v", writes)
	}

	stopProgram(t, leader)

	n.works(2*time.Second, "after")
	stopProgram(t, standby)
}

func TestStandbyTakesOverFromAKilledLeader(t *testing.T) {
	behaviour(t, 17)
	n := newNamespace(t)
	leader := startLeader(t, n)
	startStandby(t, n)

	leader.Kill()

	n.works(leaseDuration+slack, "after")
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
		return len(first.requests(t, begin, request.isWrite)) > 0, "nothing written"
	})

	stopProgram(t, first)

	failed := first.requests(t, begin, func(r request) bool {
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
