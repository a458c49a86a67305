package main

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

func TestNewFooGetsItsDeployment(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		h.createFoo(newFoo("example-foo", "web", new(int32(2))))

		h.expectReplicas("web", 2)
		owner, foo := metav1.GetControllerOf(h.getDeployment("web")), h.getFoo("example-foo")
		if owner == nil || owner.Kind != "Foo" || owner.UID != foo.UID {
			t.Errorf("controller owner: got %v, want the Foo", owner)
		}
		h.expectEvents("DeploymentCreated", 1)
	})
}

func TestStatusFollowsTheDeployment(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		h.createFoo(newFoo("example-foo", "web", new(int32(2))))
		h.expectStatus("example-foo", "False Progressing", 0)

		h.rollOut("web")

		h.expectStatus("example-foo", "True Available", 2)
		foo := h.getFoo("example-foo")
		want := "samplecontroller.k8s.io/foo-uid=" + string(foo.UID)
		if got := foo.Status.Selector; got != want {
			t.Errorf("selector: got %q, want %q", got, want)
		}
		deployment := h.getDeployment("web")
		deployment.Status.AvailableReplicas = 1
		write(h, h.deployments(namespace).UpdateStatus, deployment)
		if got := h.getFoo("example-foo").Status; got.Replicas != 2 || got.AvailableReplicas != 1 {
			t.Errorf("status: got %+v, want 2 replicas, 1 available", got)
		}
	})
}

func TestScaledFooScalesItsDeployment(t *testing.T) {
	bubble(t, func(_ *testing.T, h *harness) {
		h.start()
		h.createFoo(newFoo("example-foo", "web", new(int32(1))))
		h.changeFoo("example-foo", func(foo *v1alpha1.Foo) { foo.Spec.Replicas = new(int32(5)) })

		h.expectReplicas("web", 5)
		h.expectStatus("example-foo", "False Progressing", 0)
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

		h.expectReplicas("web", 1)
		want := "nginxinc/nginx-unprivileged:1.27-alpine"
		if got := h.getDeployment("web").Spec.Template.Spec.Containers[0].Image; got != want {
			t.Errorf("image: got %q, want %q", got, want)
		}
		h.expectEvents("DeploymentUpdated", 1)
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

		h.expectReplicas("web", 2)
		if got := h.getDeployment("web").Labels["team"]; got != "a" {
			t.Errorf(`label "team" of others: got %q, want "a"`, got)
		}
		template := h.getDeployment("web").Spec.Template
		containers := template.Spec.Containers
		if len(template.Annotations) != 1 {
			t.Error("the annotation of `kubectl rollout restart` is gone")
		}
		if len(containers) != 2 || containers[0].Image != "proxy:1" {
			t.Error("the sidecar that somebody else has added is gone, or not as it was")
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

// Anybody who may change a Deployment can change that: only the UID says who owns it.
func TestOtherNameInTheOwnerReferenceHidesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		h.createFoo(newFoo("example-foo", "web", nil))
		h.changeDeployment("web", func(d *appsv1.Deployment) { d.OwnerReferences[0].Name = "other" })
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

		h.Fail("delete", "deployments", 2, apierrors.NewInternalError(errInjected))
		h.rollOut("new")

		h.expectStatus("example-foo", "True Available", 1) // although the old one cannot be deleted yet
		h.wait(time.Minute)
		if h.deploymentExists("old") {
			t.Error("the old Deployment is still there")
		}
		h.expectEvents("DeploymentDeleted", 1)
	})
}

func TestNameThatHangsCanBeLeft(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		h.createFoo(newFoo("example-foo", "first", new(int32(1))))
		h.rollOut("first")
		for _, name := range []string{"hangs", "last"} {
			h.changeFoo("example-foo", func(foo *v1alpha1.Foo) { foo.Spec.DeploymentName = name })
		}
		if !h.deploymentExists("last") {
			t.Fatal("the last Deployment waits for one that hangs")
		}

		h.rollOut("last")

		if h.deploymentExists("first") || h.deploymentExists("hangs") {
			t.Error("a Deployment of a former name is still there")
		}
	})
}

func TestSteadyStateWritesNothing(t *testing.T) {
	bubble(t, func(_ *testing.T, h *harness) {
		h.start()
		h.createFoo(newFoo("example-foo", "web", new(int32(1))))
		h.rollOut("web")
		h.ClearRequests()

		time.Sleep(time.Hour) // virtual

		h.expectWrites("*", "*", 0)
	})
}

func TestRestartWritesNothing(t *testing.T) {
	bubble(t, func(_ *testing.T, h *harness) {
		h.start()
		h.createFoo(newFoo("example-foo", "web", new(int32(1))))
		h.rollOut("web")
		h.stop()
		h.ClearRequests()

		h.start()

		h.expectWrites("*", "*", 0)
		h.expectWrites("get", "*", 0)
	})
}

// hold deletes a Foo that has a finalizer, so that it stays, with a deletionTimestamp.
func (h *harness) hold(name string) {
	h.t.Helper()
	h.changeFoo(name, func(foo *v1alpha1.Foo) { foo.Finalizers = []string{"example.com/held"} })
	h.deleteFoo(name)
}

func TestNothingIsMadeForAFooThatIsBeingDeleted(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		h.createFoo(newFoo("example-foo", "web", new(int32(1))))
		h.hold("example-foo")
		h.changeDeployment("web", func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(9)) })
		h.expectReplicas("web", 9)
		h.deleteDeployment("web") // as the garbage collector does

		if h.deploymentExists("web") {
			t.Error("the controller created the Deployment again")
		}
	})
}

func TestStatusOfAFooThatIsBeingDeletedStaysTrue(t *testing.T) {
	bubble(t, func(_ *testing.T, h *harness) {
		h.start()
		h.createFoo(newFoo("example-foo", "web", new(int32(2))))
		h.rollOut("web")
		h.hold("example-foo")
		h.expectStatus("example-foo", "True Available", 2)

		h.changeFoo("example-foo", func(foo *v1alpha1.Foo) { foo.Spec.Replicas = new(int32(5)) })
		h.expectStatus("example-foo", "False FooTerminating", 2)
		owners := h.getDeployment("web").OwnerReferences
		h.changeDeployment("web", func(d *appsv1.Deployment) { d.OwnerReferences = nil })
		h.expectStatus("example-foo", "False FooTerminating", 0) // an orphan does not count
		h.changeDeployment("web", func(d *appsv1.Deployment) { d.OwnerReferences = owners })

		h.changeDeployment("web", func(d *appsv1.Deployment) {
			d.Finalizers = []string{"foregroundDeletion"}
		})
		h.deleteDeployment("web")
		h.expectStatus("example-foo", "False DeploymentTerminating", 2)

		h.changeDeployment("web", func(d *appsv1.Deployment) { d.Finalizers = nil })
		h.expectStatus("example-foo", "False FooTerminating", 0)

		h.ClearRequests()
		time.Sleep(time.Hour) // virtual
		h.expectWrites("*", "*", 0)
	})
}
