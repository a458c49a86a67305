package main

import (
	"errors"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"example.com/sample-controller/internal/fakes"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// These are defects that were found in other controllers: docs/reliability.md has the sources.

func TestNextProcessFinishesARename(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		h.createFoo(newFoo("example-foo", "old", new(int32(1))))
		h.rollOut("old")
		h.changeFoo("example-foo", func(foo *v1alpha1.Foo) { foo.Spec.DeploymentName = "new" })
		h.stop() // between the creation of the new Deployment and the deletion of the old one
		h.rollOut("new")

		h.start()

		if h.deploymentExists("old") {
			t.Error("the old Deployment is still there")
		}
		if got := h.ready("example-foo"); got != "True Available" {
			t.Errorf(`Ready: got %q, want "True Available"`, got)
		}
	})
}

func TestNameThatHangsCanBeLeft(t *testing.T) {
	for _, last := range []string{"another", "first"} {
		t.Run("for "+last, func(t *testing.T) {
			bubble(t, func(t *testing.T, h *harness) {
				h.start()
				h.createFoo(newFoo("example-foo", "first", new(int32(1))))
				h.rollOut("first")
				for _, name := range []string{"hangs", last} {
					h.changeFoo("example-foo", func(foo *v1alpha1.Foo) { foo.Spec.DeploymentName = name })
				}
				if !h.deploymentExists(last) {
					t.Fatal("the last Deployment waits for one that hangs")
				}

				h.rollOut(last)

				for _, name := range []string{"first", "hangs"} {
					if h.deploymentExists(name) != (name == last) {
						t.Errorf("Deployment %q exists: %t, want only %q", name, name != last, last)
					}
				}
			})
		})
	}
}

func TestWhatIsTooMuchInAnOwnedFieldGoes(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		h.createFoo(newFoo("example-foo", "web", nil))
		h.changeDeployment("web", func(d *appsv1.Deployment) {
			container := &d.Spec.Template.Spec.Containers[0]
			container.Ports = append(container.Ports, corev1.ContainerPort{ContainerPort: 22})
			container.SecurityContext.Capabilities.Add = []corev1.Capability{"NET_ADMIN"}
		})

		container := h.getDeployment("web").Spec.Template.Spec.Containers[0]
		if len(container.Ports) != 1 || len(container.SecurityContext.Capabilities.Add) > 0 {
			t.Errorf("got the ports %v and the capabilities %v, want only the Foo's own",
				container.Ports, container.SecurityContext.Capabilities)
		}
	})
}

func TestRefusedFoosHoldUpNobody(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.answer("create", "deployments", 3, apierrors.NewInvalid(
			appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind(), "bad", nil))
		h.start()
		for i := range 3 { // more than there are workers
			h.createFoo(newFoo(fmt.Sprintf("bad-%d", i), fmt.Sprintf("bad-%d", i), nil))
		}

		h.createFoo(newFoo("example-foo", "web", nil))

		if !h.deploymentExists("web") {
			t.Error("the Deployment was not created at once")
		}
	})
}

func TestUpdateKeepsWhatTheCacheDoesNotShow(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		fakes.Lag(t, &h.kube.Fake, "deployments", 5*time.Second)
		h.start()
		h.createFoo(newFoo("example-foo", "web", new(int32(1))))
		time.Sleep(time.Minute)
		h.changeDeployment("web", func(d *appsv1.Deployment) { d.Labels["team"] = "a" })
		h.changeFoo("example-foo", func(foo *v1alpha1.Foo) { foo.Spec.Replicas = new(int32(2)) })
		time.Sleep(time.Minute)

		deployment := h.getDeployment("web")
		if got := deployment.Labels["team"]; got != "a" || *deployment.Spec.Replicas != 2 {
			t.Errorf(`got team %q and %d replicas, want "a" and 2`, got, *deployment.Spec.Replicas)
		}
	})
}

func TestDeploymentThatBecomesAnothersIsNotDeleted(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		h.createFoo(newFoo("example-foo", "old", new(int32(1))))
		h.rollOut("old")
		h.changeFoo("example-foo", func(foo *v1alpha1.Foo) { foo.Spec.DeploymentName = "new" })
		released := h.getDeployment("old")
		released.OwnerReferences = nil
		h.kube.PrependReactor("delete", "deployments", func(clienttesting.Action) (
			bool, runtime.Object, error,
		) { // just before the deletion
			err := h.kubeTracker.Update(deploymentsResource.WithVersion("v1"), released, namespace)
			return err != nil && !apierrors.IsConflict(err), nil, errors.Join(err)
		})

		h.rollOut("new")
		time.Sleep(time.Minute)

		if !h.deploymentExists("old") {
			t.Error("a Deployment was deleted that the Foo had no more")
		}
	})
}
