package main

import (
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// hold deletes a Foo that has a finalizer, so that it stays, with a deletionTimestamp.
func (h *harness) hold(name string) {
	h.t.Helper()
	h.changeFoo(name, func(foo *v1alpha1.Foo) { foo.Finalizers = []string{"example.com/held"} })
	h.deleteFoo(name)
}

// expectStatus checks the status, and that it describes the newest generation of the Foo.
func (h *harness) expectStatus(name, ready string, available int32) {
	h.t.Helper()
	if got := h.ready(name); got != ready {
		h.t.Errorf("Ready: got %q, want %q", got, ready)
	}
	foo := h.getFoo(name)
	if foo.Status.Replicas != available || foo.Status.AvailableReplicas != available {
		h.t.Errorf("status: got %d replicas and %d available, want %d of each",
			foo.Status.Replicas, foo.Status.AvailableReplicas, available)
	}
	if got := foo.Status.ObservedGeneration; got != foo.Generation {
		h.t.Errorf("observedGeneration: got %d, want %d", got, foo.Generation)
	}
}

func TestNothingIsMadeForAFooThatIsBeingDeleted(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		h.createFoo(newFoo("example-foo", "web", new(int32(1))))
		h.hold("example-foo")
		h.changeDeployment("web", func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(9)) })
		if got := *h.getDeployment("web").Spec.Replicas; got != 9 {
			t.Errorf("replicas: got %d, want 9: it is not repaired for a Foo being deleted", got)
		}
		h.deleteDeployment("web") // as the garbage collector does

		if h.deploymentExists("web") {
			t.Error("the controller created the Deployment again")
		}
	})
}

func TestStatusOfAFooThatIsBeingDeletedStaysTrue(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		h.createFoo(newFoo("example-foo", "web", new(int32(2))))
		h.rollOut("web")
		h.hold("example-foo")
		h.expectStatus("example-foo", "True Available", 2)

		h.changeFoo("example-foo", func(foo *v1alpha1.Foo) { foo.Spec.Replicas = new(int32(5)) })
		h.expectStatus("example-foo", "False FooTerminating", 2)

		h.changeDeployment("web", func(d *appsv1.Deployment) {
			d.Finalizers = []string{"foregroundDeletion"}
		})
		h.deleteDeployment("web")
		h.expectStatus("example-foo", "False DeploymentTerminating", 2)

		h.changeDeployment("web", func(d *appsv1.Deployment) { d.Finalizers = nil })
		h.expectStatus("example-foo", "False FooTerminating", 0)

		h.clearRequests()
		time.Sleep(time.Hour) // virtual
		if got := h.writes("*", "*"); got != 0 {
			t.Errorf("writes in an idle hour: got %d, want 0", got)
		}
	})
}

func TestFooIsQueuedWhenOnlyTheKeyOfItsDeletionIsKnown(t *testing.T) {
	controller, foos, _ := newHandlers(t)
	foos.OnDelete(cache.DeletedFinalStateUnknown{Key: "default/example-foo"})

	got, want := drain(controller), cache.NewObjectName("default", "example-foo")
	if len(got) != 1 || got[0] != want {
		t.Errorf("keys in the queue: got %v, want [%v]", got, want)
	}
}

func TestOrphanDoesNotCountForAFooThatIsBeingDeleted(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		h.createFoo(newFoo("example-foo", "web", new(int32(2))))
		h.rollOut("web")
		h.hold("example-foo")
		h.changeDeployment("web", func(d *appsv1.Deployment) { d.OwnerReferences = nil })

		h.expectStatus("example-foo", "False FooTerminating", 0)
	})
}

func TestRefusedStatusOfAFooThatIsBeingDeletedIsNoError(t *testing.T) {
	foos := schema.GroupResource{Group: v1alpha1.GroupName, Resource: "foos"}
	for name, test := range map[string]struct {
		answer error
		writes int
	}{
		"the Foo is gone": {apierrors.NewNotFound(foos, "example-foo"), 1},
		"somebody else wrote it": {
			apierrors.NewConflict(foos, "example-foo", errors.New("injected")), 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, h *harness) {
				h.start()
				h.createFoo(newFoo("example-foo", "web", new(int32(2))))
				h.hold("example-foo")
				time.Sleep(time.Minute) // virtual: every delayed key has been synced
				h.answer("update", "foos", 1, test.answer)
				h.clearRequests()
				h.deleteDeployment("web")
				time.Sleep(time.Hour) // virtual

				if got := h.writes("*", "*") - 1; got != test.writes { // without the deletion above
					t.Errorf("writes of the status: got %d, want %d", got, test.writes)
				}
				if got := h.errors.Load(); got != 0 {
					t.Errorf("errors reported: got %d, want 0", got)
				}
			})
		})
	}
}
