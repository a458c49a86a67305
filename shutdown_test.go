package main

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	appsclient "k8s.io/client-go/kubernetes/typed/apps/v1"
	eventsclient "k8s.io/client-go/kubernetes/typed/events/v1"
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

// TestNoEventOfABurstIsLost records more Events than the broadcaster's own queue of 1,000 holds,
// while the API server takes one each half second.
func TestNoEventOfABurstIsLost(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		recorder, err := newEventRecorder(t.Context(), slowEventsClient{h.kube})
		if err != nil {
			t.Fatal(err)
		}
		foo := newFoo("example-foo", "web", nil)
		for range 3000 {
			recorder.Eventf(foo, nil, "Normal", "Burst", "Test", "one of many")
			time.Sleep(time.Millisecond)
		}
		recorder.flush(time.Hour)

		if got := h.events()["Burst"]; got != 3000 {
			t.Errorf("events written: got %d, want 3000", got)
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
