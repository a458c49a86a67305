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
					t.Errorf(`Ready: got %q, want "False DeploymentNameTaken"`, got)
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
			t.Fatal("the retry after 15s did not create the Deployment")
		}
		if got := h.ready("example-foo"); got != "False Progressing" {
			t.Errorf(`Ready: got %q, want "False Progressing"`, got)
		}
	})
}

func TestSecondFooTakesOverWhenTheFirstGoes(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		h.createFoo(newFoo("first", "web", nil))
		h.createFoo(newFoo("second", "web", nil))
		if got := h.ready("second"); got != "False DeploymentNameTaken" {
			t.Errorf(`Ready of the second: got %q, want "False DeploymentNameTaken"`, got)
		}
		if got := metav1.GetControllerOf(h.getDeployment("web")).Name; got != "first" {
			t.Errorf(`owner: got %q, want "first"`, got)
		}

		h.deleteFoo("first")
		h.deleteDeployment("web") // as the garbage collector does

		if got := metav1.GetControllerOf(h.getDeployment("web")).Name; got != "second" {
			t.Errorf(`owner: got %q, want "second"`, got)
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
		unseen.Labels = nil // so the informer shows neither the Deployment nor its deletion
		h.createDeployment(unseen)
		h.answer("patch", "deployments", 1, apierrors.NewNotFound(deploymentsResource, "web"))
		h.start()
		h.createFoo(foo)
		time.Sleep(2 * time.Second)

		if got := h.writes("patch", "deployments"); got != 2 {
			t.Errorf("updates: got %d, want 2, the second one after the NotFound", got)
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
			t.Errorf("replicas: got %d, want 7: nothing repairs a Deployment that is being deleted", got)
		}
		if got := h.ready("example-foo"); got != "False DeploymentTerminating" {
			t.Errorf(`Ready: got %q, want "False DeploymentTerminating"`, got)
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
			t.Errorf("replicas: got %d, want the 4 that somebody else wrote", got)
		}
		if got := h.ready("example-foo"); got != "False DeploymentNameTaken" {
			t.Errorf(`Ready: got %q, want "False DeploymentNameTaken"`, got)
		}
	})
}

// Somebody who may edit Deployments in one namespace can name a Foo of another one as their owner.
func TestDeploymentOfAnotherNamespaceIsNotTheFoos(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		foo := newFoo("example-foo", "web", new(int32(1)))
		h.createFoo(foo)
		bank := foreignDeployment(nil)
		bank.Name = "bank"
		h.createDeployment(bank)
		forged := newDeployment(foo)
		forged.Name, forged.Namespace, forged.UID = "bank", "elsewhere", "forged"
		h.act(func() error {
			_, err := h.kube.AppsV1().Deployments("elsewhere").Create(
				t.Context(), forged, metav1.CreateOptions{})
			return err
		})

		h.rollOut("web")

		if got := h.writes("delete", "deployments"); got != 0 {
			t.Errorf("deletions: got %d, want 0", got)
		}
		if got := h.ready("example-foo"); got != "True Available" {
			t.Errorf(`Ready: got %q, want "True Available"`, got)
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
			t.Error("the sixth try did not create the Deployment")
		}
		if got := h.errors.Load(); got != 5 {
			t.Errorf("errors reported: got %d, want 5, one for each failed try", got)
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
			t.Fatal("the Deployment exists; want the first create to fail")
		}
		time.Sleep(5 * time.Millisecond)
		synctest.Wait()

		if !h.deploymentExists("web") {
			t.Error("the retry 5ms after the failure did not create the Deployment")
		}
	})
}

func TestRefusedDeploymentIsReportedOnce(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		refused := apierrors.NewForbidden(deploymentsResource, "web", errors.New("denied by a policy"))
		h.answer("create", "deployments", 3, refused)
		h.start()
		h.createFoo(newFoo("example-foo", "web", nil))
		if got := h.ready("example-foo"); got != "False DeploymentRejected" {
			t.Fatalf(`Ready: got %q, want "False DeploymentRejected"`, got)
		}
		message := h.getFoo("example-foo").Status.Conditions[0].Message
		if !strings.Contains(message, "denied by a policy") {
			t.Errorf("message: got %q, want it to contain the API server's reason", message)
		}
		time.Sleep(time.Minute)

		if got := h.events()["DeploymentRejected"]; got != 1 {
			t.Errorf("DeploymentRejected events: got %d, want 1", got)
		}
		if !h.deploymentExists("web") {
			t.Error("the Deployment was not created after the API server stopped refusing it")
		}
	})
}

func TestConflictIsRetriedQuietly(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		h.createFoo(newFoo("example-foo", "web", new(int32(1))))
		h.answer("patch", "deployments", 2,
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
