package main

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

var deploymentsResource = schema.GroupResource{Group: "apps", Resource: "deployments"}

func foreignDeployment(labels map[string]string) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: namespace, Labels: labels},
	}
}

func TestForeignDeploymentIsNotTouched(t *testing.T) {
	for name, labels := range map[string]map[string]string{
		"that the informer does not see": nil,
		"that the informer sees":         {"app.kubernetes.io/managed-by": "sample-controller"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, h *harness) {
				h.createDeployment(foreignDeployment(labels))
				h.start()
				h.createFoo(newFoo("example-foo", "web", new(int32(3))))
				time.Sleep(time.Hour)
				h.changeFoo("example-foo", func(foo *v1alpha1.Foo) { foo.Spec.Replicas = new(int32(2)) })

				if deployment := h.getDeployment("web"); deployment.Spec.Replicas != nil {
					t.Errorf("the Deployment was changed: %v", deployment.Spec)
				}
				if got := h.ready("example-foo"); got != "False DeploymentNameTaken" {
					t.Errorf("Ready: got %q", got)
				}
				if got := h.events()["DeploymentNameTaken"]; got != 1 {
					t.Errorf("DeploymentNameTaken events in an hour: got %d, want 1", got)
				}
			})
		})
	}
}

func TestFooProceedsWhenTheForeignDeploymentGoes(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.createDeployment(foreignDeployment(nil))
		h.start()
		h.createFoo(newFoo("example-foo", "web", new(int32(3))))
		h.deleteDeployment("web")
		time.Sleep(15 * time.Second)
		synctest.Wait()

		if !h.deploymentExists("web") {
			t.Fatal("the Deployment was not created within the slow retry")
		}
		if got := h.ready("example-foo"); got != "False Progressing" {
			t.Errorf("Ready: got %q", got)
		}
	})
}

func TestSecondFooTakesOverWhenTheFirstGoes(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		h.createFoo(newFoo("first", "web", nil))
		h.createFoo(newFoo("second", "web", nil))
		if got := h.ready("second"); got != "False DeploymentNameTaken" {
			t.Errorf("Ready of the second: got %q", got)
		}
		if got := metav1.GetControllerOf(h.getDeployment("web")).Name; got != "first" {
			t.Errorf("controller: got %q, want the first", got)
		}

		h.deleteFoo("first")
		h.deleteDeployment("web") // as the garbage collector does

		if got := metav1.GetControllerOf(h.getDeployment("web")).Name; got != "second" {
			t.Errorf("controller: got %q, want the second", got)
		}
	})
}

func TestRemovedLabelIsPutBack(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		h.createFoo(newFoo("example-foo", "web", nil))
		h.changeDeployment("web", func(d *appsv1.Deployment) { d.Labels = nil })

		want := "sample-controller"
		if got := h.getDeployment("web").Labels["app.kubernetes.io/managed-by"]; got != want {
			t.Errorf("managed-by label: got %q, want %q", got, want)
		}
	})
}

func TestDeploymentThatGoesWhileItsLabelIsPutBackIsLookedAtAgain(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		foo := newFoo("example-foo", "web", nil)
		unseen := newDeployment(foo)
		unseen.Labels = nil // so the informer shows neither it nor that it is deleted
		h.createDeployment(unseen)
		h.answer("update", "deployments", 1, apierrors.NewNotFound(deploymentsResource, "web"))
		h.start()
		h.createFoo(foo)
		time.Sleep(2 * time.Second)

		if got := h.writes("update", "deployments"); got != 2 {
			t.Errorf("updates: got %d, want a second one", got)
		}
		if got := h.errors.Load(); got != 0 {
			t.Errorf("errors reported: got %d, want 0", got)
		}
	})
}

func TestTerminatingDeploymentIsNotRepaired(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		h.createFoo(newFoo("example-foo", "web", new(int32(1))))
		h.changeDeployment("web", func(d *appsv1.Deployment) {
			d.DeletionTimestamp, d.Finalizers = new(metav1.Now()), []string{"foregroundDeletion"}
			d.Spec.Replicas = new(int32(7))
		})

		if got := *h.getDeployment("web").Spec.Replicas; got != 7 {
			t.Errorf("replicas: got %d, want 7 as long as it goes", got)
		}
		if got := h.ready("example-foo"); got != "False DeploymentTerminating" {
			t.Errorf("Ready: got %q", got)
		}
	})
}

func TestReleasedDeploymentIsForeign(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		h.createFoo(newFoo("example-foo", "web", new(int32(1))))
		h.changeDeployment("web", func(d *appsv1.Deployment) { d.OwnerReferences = nil })
		h.changeDeployment("web", func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(4)) })

		if got := *h.getDeployment("web").Spec.Replicas; got != 4 {
			t.Errorf("replicas: got %d, want 4 as its new owner wrote", got)
		}
		if got := h.ready("example-foo"); got != "False DeploymentNameTaken" {
			t.Errorf("Ready: got %q", got)
		}
	})
}

func TestTransientErrorsAreRetried(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.answer("create", "deployments", 5, apierrors.NewInternalError(errors.New("injected")))
		h.start()
		h.createFoo(newFoo("example-foo", "web", nil))
		time.Sleep(155 * time.Millisecond) // 5 + 10 + 20 + 40 + 80
		synctest.Wait()

		if !h.deploymentExists("web") {
			t.Error("the Deployment was not created by the sixth try")
		}
		if got := h.errors.Load(); got != 5 {
			t.Errorf("errors reported: got %d, want each of the 5 once", got)
		}
	})
}

func TestBackoffStartsAgainAfterASuccess(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		injected := apierrors.NewInternalError(errors.New("injected"))
		h.answer("create", "deployments", 10, injected)
		h.start()
		h.createFoo(newFoo("example-foo", "web", nil))
		time.Sleep(time.Minute)
		h.answer("create", "deployments", 1, injected)
		h.deleteDeployment("web")
		if h.deploymentExists("web") {
			t.Fatal("the create was to fail once")
		}
		time.Sleep(5 * time.Millisecond)
		synctest.Wait()

		if !h.deploymentExists("web") {
			t.Error("the first retry after a success did not come after 5ms")
		}
	})
}

func TestRefusedDeploymentIsReportedOnce(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		refused := apierrors.NewForbidden(deploymentsResource, "web", errors.New("not on Fridays"))
		h.answer("create", "deployments", 3, refused)
		h.start()
		h.createFoo(newFoo("example-foo", "web", nil))
		if got := h.ready("example-foo"); got != "False DeploymentRejected" {
			t.Fatalf("Ready: got %q", got)
		}
		message := h.getFoo("example-foo").Status.Conditions[0].Message
		if !strings.Contains(message, "not on Fridays") {
			t.Errorf("message: got %q, want the API server's reason in it", message)
		}
		time.Sleep(time.Minute)

		if got := h.events()["DeploymentRejected"]; got != 1 {
			t.Errorf("DeploymentRejected events: got %d, want 1", got)
		}
		if !h.deploymentExists("web") {
			t.Error("the Deployment was not created when it was no longer refused")
		}
	})
}

func TestConflictIsRetriedQuietly(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		h.createFoo(newFoo("example-foo", "web", new(int32(1))))
		h.answer("update", "deployments", 2,
			apierrors.NewConflict(deploymentsResource, "web", errors.New("injected")))
		h.changeFoo("example-foo", func(foo *v1alpha1.Foo) { foo.Spec.Replicas = new(int32(2)) })
		time.Sleep(time.Second)
		synctest.Wait()

		if got := *h.getDeployment("web").Spec.Replicas; got != 2 {
			t.Errorf("replicas: got %d, want 2", got)
		}
		if got := h.errors.Load(); got != 0 {
			t.Errorf("errors reported: got %d, want 0", got)
		}
	})
}

func TestTerminatingNamespaceIsNoError(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		terminating := apierrors.NewForbidden(deploymentsResource, "web", errors.New("going"))
		terminating.ErrStatus.Details.Causes = []metav1.StatusCause{
			{Type: corev1.NamespaceTerminatingCause},
		}
		h.answer("create", "deployments", 100, terminating)
		h.start()
		h.createFoo(newFoo("example-foo", "web", nil))
		time.Sleep(time.Hour)

		if got := h.writes("create", "deployments"); got != 1 {
			t.Errorf("creates: got %d, want 1", got)
		}
		if got := h.errors.Load(); got != 0 {
			t.Errorf("errors reported: got %d, want 0", got)
		}
	})
}
