package main

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	appsclient "k8s.io/client-go/kubernetes/typed/apps/v1"
	eventsclient "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/tools/leaderelection"
)

// slowClient takes three seconds to create a Deployment.
type slowClient struct{ kubernetes.Interface }

func (c slowClient) AppsV1() appsclient.AppsV1Interface { return slowApps{c.Interface.AppsV1()} }

type slowApps struct{ appsclient.AppsV1Interface }

func (c slowApps) Deployments(namespace string) appsclient.DeploymentInterface {
	return slowDeployments{c.AppsV1Interface.Deployments(namespace)}
}

type slowDeployments struct{ appsclient.DeploymentInterface }

func (c slowDeployments) Create(
	ctx context.Context, deployment *appsv1.Deployment, options metav1.CreateOptions,
) (*appsv1.Deployment, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(3 * time.Second):
		return c.DeploymentInterface.Create(ctx, deployment, options)
	}
}

func TestShutdownFinishesWhatHasBegunAndNoMore(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.client = slowClient{h.kube}
		h.start()
		for _, name := range []string{"a", "b", "c"} { // one more than there are workers
			h.createFoo(newFoo(name, name, nil))
		}
		begin := time.Now()
		h.stop()

		if got := time.Since(begin).Round(time.Second); got != 3*time.Second {
			t.Errorf("stopping took %v, want the 3s of the requests under way", got)
		}
		if !h.deploymentExists("a") || !h.deploymentExists("b") || h.deploymentExists("c") {
			t.Error("want the two Deployments that had begun, and not the third")
		}
		if got := h.events()["DeploymentCreated"]; got != 2 {
			t.Errorf("events written before the end: got %d, want 2", got)
		}
	})
}

// slowEventsClient takes half a second to create an Event.
type slowEventsClient struct{ kubernetes.Interface }

func (c slowEventsClient) EventsV1() eventsclient.EventsV1Interface {
	return slowEventsV1{c.Interface.EventsV1()}
}

type slowEventsV1 struct{ eventsclient.EventsV1Interface }

func (c slowEventsV1) Events(namespace string) eventsclient.EventInterface {
	return slowEvents{c.EventsV1Interface.Events(namespace)}
}

type slowEvents struct{ eventsclient.EventInterface }

func (c slowEvents) Create(
	ctx context.Context, event *eventsv1.Event, options metav1.CreateOptions,
) (*eventsv1.Event, error) {
	time.Sleep(500 * time.Millisecond)
	return c.EventInterface.Create(ctx, event, options)
}

func TestFlushWaitsForTheEventsUnderWay(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		recorder, err := newEventRecorder(t.Context(), slowEventsClient{h.kube})
		if err != nil {
			t.Fatal(err)
		}
		foo := newFoo("example-foo", "web", nil)
		recorder.Eventf(foo, nil, "Normal", "Last", "Test", "the last thing that happened")
		recorder.flush(time.Second)

		if got := h.events()["Last"]; got != 1 {
			t.Errorf("events written: got %d, want 1", got)
		}
	})
}

func TestFlushDoesNotWaitForEver(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		recorder, err := newEventRecorder(t.Context(), slowEventsClient{h.kube})
		if err != nil {
			t.Fatal(err)
		}
		foo := newFoo("example-foo", "web", nil)
		for range 10 {
			recorder.Eventf(foo, nil, "Normal", "Late", "Test", "late")
			time.Sleep(time.Millisecond)
		}
		begin := time.Now()
		recorder.flush(time.Second)

		if got := time.Since(begin); got != time.Second {
			t.Errorf("flush took %v, want 1s", got)
		}
		time.Sleep(time.Minute) // let the writer end before the bubble does
	})
}

// leaderClients returns clients for lead, and the options with their defaults.
func leaderClients(t *testing.T, h *harness) (*clients, leaderElectionOptions) {
	t.Helper()
	o, err := parseFlags([]string{"--leader-elect"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return &clients{leases: h.kube.CoordinationV1(), namespace: namespace}, o.leaderElection
}

func (h *harness) leaseHolder() string {
	h.t.Helper()
	lease, err := h.kube.CoordinationV1().Leases(namespace).Get(
		context.Background(), "sample-controller", metav1.GetOptions{})
	if err != nil {
		h.t.Fatal(err)
	}
	return *lease.Spec.HolderIdentity
}

func TestLeaseIsHeldUntilTheWorkIsDone(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		clients, o := leaderClients(t, h)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			health := leaderelection.NewLeaderHealthzAdaptor(0)
			done <- lead(ctx, clients, o, health, func(ctx context.Context) {
				<-ctx.Done()
				time.Sleep(30 * time.Second) // longer than the Lease lasts without renewal
				if h.leaseHolder() == "" {
					t.Error("the Lease was released before the work was done")
				}
			})
		}()
		synctest.Wait()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("got %v, want no error", err)
		}
		if got := h.leaseHolder(); got != "" {
			t.Errorf("holder afterwards: got %q, want none", got)
		}
	})
}

func TestStandbyWaitsAndStops(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		clients, o := leaderClients(t, h)
		leaderCtx, stopLeader := context.WithCancel(t.Context())
		standbyCtx, stopStandby := context.WithCancel(t.Context())
		var working atomic.Int32
		work := func(ctx context.Context) {
			working.Add(1)
			<-ctx.Done()
			working.Add(-1)
		}
		stopped := make(chan error, 2)
		for _, ctx := range []context.Context{leaderCtx, standbyCtx} {
			go func() {
				stopped <- lead(ctx, clients, o, leaderelection.NewLeaderHealthzAdaptor(0), work)
			}()
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		if got := working.Load(); got != 1 {
			t.Errorf("at work: got %d of 2, want 1", got)
		}
		stopStandby()
		if err := <-stopped; err != nil {
			t.Errorf("standby: got %v, want no error", err)
		}
		if got := working.Load(); got != 1 {
			t.Errorf("at work without the standby: got %d, want 1", got)
		}
		stopLeader()
		<-stopped
	})
}

func TestLostLeaseIsAnError(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		clients, o := leaderClients(t, h)
		lost := make(chan error)
		go func() {
			lost <- lead(t.Context(), clients, o, leaderelection.NewLeaderHealthzAdaptor(0),
				func(ctx context.Context) { <-ctx.Done() })
		}()
		synctest.Wait()
		h.answer("update", "leases", 1000, apierrors.NewInternalError(errors.New("injected")))
		if err := <-lost; err == nil {
			t.Error("got no error, want one")
		}
	})
}
