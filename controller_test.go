package main

import (
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

func TestNewFooGetsItsDeployment(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		h.createFoo(newFoo("example-foo", "web", new(int32(2))))

		deployment := h.getDeployment("web")
		if got := *deployment.Spec.Replicas; got != 2 {
			t.Errorf("replicas: got %d, want 2", got)
		}
		owner := metav1.GetControllerOf(deployment)
		if owner == nil || owner.Kind != "Foo" || owner.UID != "uid-of-example-foo" {
			t.Errorf("controller owner: got %v, want the Foo", owner)
		}
		if got := h.events()["DeploymentCreated"]; got != 1 {
			t.Errorf("DeploymentCreated events: got %d, want 1", got)
		}
	})
}

func TestFoosFromBeforeTheStartGetTheirDeployments(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.createFoo(newFoo("example-foo", "web", nil))
		h.start()

		if !h.deploymentExists("web") {
			t.Error("the Deployment was not created")
		}
	})
}

func TestNamespaceFlagNarrowsTheWatch(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.options.namespace = "elsewhere"
		h.start()
		h.createFoo(newFoo("example-foo", "web", nil))

		if h.deploymentExists("web") {
			t.Error("a Foo outside --namespace got a Deployment")
		}
	})
}

func TestStatusFollowsTheDeployment(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		h.createFoo(newFoo("example-foo", "web", new(int32(2))))
		if got := h.ready("example-foo"); got != "False Progressing" {
			t.Errorf(`Ready before the rollout: got %q, want "False Progressing"`, got)
		}

		h.rollOut("web")

		if got := h.ready("example-foo"); got != "True Available" {
			t.Errorf(`Ready after the rollout: got %q, want "True Available"`, got)
		}
		status := h.getFoo("example-foo").Status
		if status.Replicas != 2 || status.AvailableReplicas != 2 || status.ObservedGeneration != 1 {
			t.Errorf("status: got %+v, want 2 replicas, 2 available, generation 1", status)
		}
		if want := "samplecontroller.k8s.io/foo-uid=uid-of-example-foo"; status.Selector != want {
			t.Errorf("selector: got %q, want %q", status.Selector, want)
		}
	})
}

func TestScaledFooScalesItsDeployment(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		h.createFoo(newFoo("example-foo", "web", new(int32(1))))
		h.changeFoo("example-foo", func(foo *v1alpha1.Foo) { foo.Spec.Replicas = new(int32(5)) })

		if got := *h.getDeployment("web").Spec.Replicas; got != 5 {
			t.Errorf("replicas: got %d, want 5", got)
		}
		if got := h.getFoo("example-foo").Status.ObservedGeneration; got != 2 {
			t.Errorf("observedGeneration: got %d, want 2", got)
		}
	})
}

func TestAbsentReplicasAreOne(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		h.createFoo(newFoo("example-foo", "web", nil)) // the fake client sets no defaults
		h.changeDeployment("web", func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(7)) })

		if got := *h.getDeployment("web").Spec.Replicas; got != 1 {
			t.Errorf("replicas: got %d, want 1", got)
		}
	})
}

func TestChangedDeploymentIsRepaired(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		h.createFoo(newFoo("example-foo", "web", new(int32(1))))
		h.changeDeployment("web", func(d *appsv1.Deployment) {
			d.Spec.Replicas = new(int32(9))
			d.Spec.Template.Spec.Containers[0].Image = "evil:1"
		})

		deployment := h.getDeployment("web")
		if got := *deployment.Spec.Replicas; got != 1 {
			t.Errorf("replicas: got %d, want 1", got)
		}
		want := "nginxinc/nginx-unprivileged:1.27-alpine"
		if got := deployment.Spec.Template.Spec.Containers[0].Image; got != want {
			t.Errorf("image: got %q, want %q", got, want)
		}
		if got := h.events()["DeploymentUpdated"]; got != 1 {
			t.Errorf("DeploymentUpdated events: got %d, want 1", got)
		}
	})
}

func TestWhatOthersWroteSurvivesAScale(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		h.createFoo(newFoo("example-foo", "web", new(int32(1))))
		h.changeDeployment("web", func(d *appsv1.Deployment) {
			d.Labels["team"] = "a"
			d.Spec.Template.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "now"}
			d.Spec.Template.Spec.Containers = append(
				[]corev1.Container{{Name: "sidecar", Image: "proxy:1"}}, d.Spec.Template.Spec.Containers...)
		})
		h.changeFoo("example-foo", func(foo *v1alpha1.Foo) { foo.Spec.Replicas = new(int32(2)) })

		deployment := h.getDeployment("web")
		if got := deployment.Labels["team"]; got != "a" {
			t.Errorf(`label "team" of others: got %q, want "a"`, got)
		}
		if len(deployment.Spec.Template.Annotations) != 1 {
			t.Error("the annotation of `kubectl rollout restart` is gone")
		}
		containers := deployment.Spec.Template.Spec.Containers
		if len(containers) != 2 || containers[0].Image != "proxy:1" {
			t.Errorf("containers: got %v, want the sidecar untouched and first", containers)
		}
		if got := *deployment.Spec.Replicas; got != 2 {
			t.Errorf("replicas: got %d, want 2", got)
		}
	})
}

func TestDeletedDeploymentComesBack(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		h.createFoo(newFoo("example-foo", "web", nil))
		h.deleteDeployment("web")

		if !h.deploymentExists("web") {
			t.Error("the Deployment did not come back")
		}
	})
}

func TestRenamedFooMovesItsDeployment(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		h.createFoo(newFoo("example-foo", "old", new(int32(1))))
		h.rollOut("old")
		h.changeFoo("example-foo", func(foo *v1alpha1.Foo) { foo.Spec.DeploymentName = "new" })
		if !h.deploymentExists("new") || !h.deploymentExists("old") {
			t.Fatal("both Deployments must exist until the new one is available")
		}

		h.rollOut("new")

		if h.deploymentExists("old") {
			t.Error("the old Deployment is still there")
		}
		if got := h.events()["DeploymentDeleted"]; got != 1 {
			t.Errorf("DeploymentDeleted events: got %d, want 1", got)
		}
		if got := h.ready("example-foo"); got != "True Available" {
			t.Errorf(`Ready: got %q, want "True Available"`, got)
		}
	})
}

func TestSteadyStateWritesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		h.createFoo(newFoo("example-foo", "web", new(int32(1))))
		h.rollOut("web")
		h.clearRequests()

		time.Sleep(time.Hour) // virtual

		if got := h.writes("*", "*"); got != 0 {
			t.Errorf("writes in an idle hour: got %d, want 0", got)
		}
	})
}

func TestRestartWritesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		h.createFoo(newFoo("example-foo", "web", new(int32(1))))
		h.rollOut("web")
		h.stop()
		h.clearRequests()

		h.start()

		if got := h.writes("*", "*"); got != 0 {
			t.Errorf("writes after a restart: got %d, want 0", got)
		}
	})
}

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
