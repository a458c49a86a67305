package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/internal/suite/process"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// inRounds runs test once for each round, each in a history of its own.
func inRounds(t *testing.T, test func(*history)) {
	for round := range *rounds {
		t.Logf("round %d of %d, -seed %d", round+1, *rounds, *seed)
		t.Run(fmt.Sprint("round ", round+1), func(t *testing.T) {
			test(newHistory(t, round))
		})
	}
}

// kubeconfig writes a kubeconfig for the controller of h, and returns its path.
func (h *history) kubeconfig() string {
	h.t.Helper()
	path, err := writeKubeconfig(h.user, h.namespace, h.proxy.url)
	if err != nil {
		h.t.Fatal(err)
	}
	return path
}

// supervise runs the controller of h until the test ends.
func (h *history) supervise() *supervisor {
	h.t.Helper()
	path := h.kubeconfig()
	s := supervise(h.t, func() (*process.Process, error) {
		return startProgram(path, h.namespace)
	})
	h.t.Cleanup(func() {
		if h.t.Failed() {
			h.t.Logf("output of the controller:\n%s", s.output())
		}
	})
	return s
}

// What a controller says if it finds no API server when it starts, or one that is itself starting
// and does not serve Foos yet. The last one is what a leader says that could not renew its Lease.
const (
	noAPIServer = "does not answer"
	noFoos      = "does not serve foos"
	lostLease   = "the Lease was lost"
)

// checkExits fails the test if the controller ended by itself for another reason than these. The
// next call looks only at what has ended since.
func (h *history) checkExits(s *supervisor, reasons ...string) {
	h.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range s.ended {
		total.count("starts given up")
		says := func(reason string) bool { return strings.Contains(line, reason) }
		if !slices.ContainsFunc(reasons, says) {
			total.count(unexplained)
			h.t.Errorf("the controller ended by itself: %s", line)
		}
	}
	s.ended = nil
}

// Behaviour 20.
func TestRequestsFailAndTheControllerIsKilled(t *testing.T) {
	t.Parallel()
	inRounds(t, func(h *history) {
		controller := h.supervise()
		h.proxy.inject(true)

		h.disturb(*killEvery, h.users.work, func(*rand.Rand) error {
			controller.kill()
			return nil
		})
		h.lastWave()

		h.settle()
		h.checkNeedless()
		h.checkExits(controller, noAPIServer)
	})
}

// Behaviour 20.
func TestRequestsFailAndTheAPIServerIsKilled(t *testing.T) {
	inRounds(t, func(h *history) {
		h.users.newNames = true
		controller := h.supervise()
		h.proxy.inject(true)

		h.disturb(*killEvery, h.users.work, func(random *rand.Rand) error {
			return restartAPIServer(time.Duration(random.IntN(1000)) * time.Millisecond)
		})
		h.lastWave()

		h.settle()
		h.checkNeedless()
		h.checkExits(controller, noAPIServer, noFoos)
	})
}

// Behaviour 20.
func TestDeletionsThatNoWatchShowedAreNoticed(t *testing.T) {
	t.Parallel()
	inRounds(t, func(h *history) {
		h.supervise()
		h.createFoo(newFoo("seen", "seen", 1))
		h.awaitReady("seen")
		h.proxy.hide("/deployments")

		h.createFoo(newFoo("unseen", "unseen", 1))
		h.awaitDeployment("unseen")
		for _, name := range []string{"seen", "unseen"} {
			err := h.deployments.Delete(h.t.Context(), name, metav1.DeleteOptions{})
			if err != nil {
				h.t.Fatal(err)
			}
		}
		h.proxy.hide("")

		h.settle()
	})
}

// createFoo creates foo, and records that it must not be lost.
func (h *history) createFoo(foo *v1alpha1.Foo) {
	h.t.Helper()
	h.users.names[foo.Name] = foo.Spec.DeploymentName
	if err := waitUntil(h.users.create(foo)); err != nil {
		h.t.Fatal(err)
	}
}

// awaitReady waits until the Foo is Ready. Then the controller has seen its Deployment.
func (h *history) awaitReady(name string) {
	h.t.Helper()
	err := waitUntil(func() error {
		foo, err := h.foos.Get(context.Background(), name, metav1.GetOptions{})
		if err == nil && !meta.IsStatusConditionTrue(foo.Status.Conditions, "Ready") {
			err = fmt.Errorf("foo %s is not Ready: %+v", name, foo.Status)
		}
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

// awaitDeployment waits until there is a Deployment of that name.
func (h *history) awaitDeployment(name string) {
	h.t.Helper()
	err := waitUntil(func() error {
		_, err := h.deployments.Get(context.Background(), name, metav1.GetOptions{})
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
}
