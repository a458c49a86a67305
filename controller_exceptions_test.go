package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// These tests say what becomes of one error, one moment, or one Deployment of somebody else.
// TestExplore tries each fault at every place.

var (
	deploymentsResource = appsv1.Resource("deployments")
	errInjected         = errors.New("injected")
)

func foreignDeployment(labels map[string]string) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: namespace, Labels: labels},
	}
}

func TestForeignDeploymentIsNotTouched(t *testing.T) {
	for name, test := range map[string]struct {
		labels map[string]string
		within time.Duration // the Foo proceeds when the Deployment is gone
		tries  int           // one Create, and then one every 15s that only reads
	}{
		"that the informer does not see": {within: 15 * time.Second, tries: 1},
		"that the informer sees":         {labels: map[string]string{managedByLabel: controllerName}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, h *harness) {
				h.createDeployment(foreignDeployment(test.labels))
				theirs := h.getDeployment("web")
				h.start()
				h.Fail("update", "foos/status", 3, apierrors.NewInternalError(errInjected))
				h.createFoo(newFoo("example-foo", "web", new(int32(3))))
				time.Sleep(time.Hour)
				h.expectWrites("create", "deployments", test.tries) // each one would count in a quota
				h.changeFoo("example-foo", func(foo *v1alpha1.Foo) { foo.Spec.Replicas = new(int32(2)) })
				if now := h.getDeployment("web"); !equality.Semantic.DeepEqual(now, theirs) {
					t.Errorf("the Deployment was changed: got %v, want %v", now, theirs)
				}
				h.expectReady("example-foo", "False DeploymentNameTaken")
				h.expectEvents("DeploymentNameTaken", 1)

				h.ClearRequests()
				h.wait(15 * time.Second)
				h.expectWrites("*", "*", 0)
				h.expectWrites("get", "*", 2*test.tries) // the Foo, the Deployment

				h.deleteDeployment("web")
				h.wait(test.within)

				h.expectReady("example-foo", "False Progressing")
			})
		})
	}
}

func TestSecondFooTakesOverWhenTheFirstGoes(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		h.createFoo(newFoo("first", "web", nil))
		h.createFoo(newFoo("second", "web", nil))
		h.expectReady("second", "False DeploymentNameTaken")
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

// Somebody who may edit Deployments in one namespace can name a Foo of another one as their owner.
func TestDeploymentOfAnotherNamespaceIsNotOwned(t *testing.T) {
	bubble(t, func(_ *testing.T, h *harness) {
		h.start()
		h.createFoo(newFoo("example-foo", "web", new(int32(1))))
		foo := h.getFoo("example-foo")
		h.act(func() error {
			elsewhere := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "elsewhere"}}
			_, err := h.kube.CoreV1().Namespaces().Create(
				context.Background(), elsewhere, metav1.CreateOptions{})
			return err
		})
		bank := foreignDeployment(nil)
		bank.Name = "bank"
		h.createDeployment(bank)
		forged := newDeployment(foo)
		forged.Name, forged.Namespace, forged.UID = "bank", "elsewhere", "forged"
		h.createDeployment(forged)

		h.rollOut("web")

		h.expectWrites("delete", "deployments", 0)
		h.expectReady("example-foo", "True Available")
	})
}

func TestTerminatingDeploymentIsNotRepaired(t *testing.T) {
	bubble(t, func(_ *testing.T, h *harness) {
		h.start()
		h.createFoo(newFoo("example-foo", "web", new(int32(1))))
		h.changeDeployment("web", func(d *appsv1.Deployment) { d.Finalizers = []string{"example.com/held"} })
		h.deleteDeployment("web")
		h.changeDeployment("web", func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(7)) })

		h.expectReplicas("web", 7)
		h.expectReady("example-foo", "False DeploymentTerminating")
	})
}

func TestRemovedLabelIsPutBack(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		h.createFoo(newFoo("example-foo", "web", nil))
		h.changeDeployment("web", func(d *appsv1.Deployment) { d.Labels = nil })

		labels := h.getDeployment("web").Labels
		if labels["app.kubernetes.io/managed-by"] != "sample-controller" {
			t.Errorf("labels: got %v, want the one by which the informer selects", labels)
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
		h.Before("delete", "deployments", 1, func(ctx context.Context) error {
			_, err := h.deployments(namespace).Update(ctx, released, metav1.UpdateOptions{})
			return err
		})

		h.rollOut("new")
		time.Sleep(time.Minute)

		if !h.deploymentExists("old") {
			t.Error("a Deployment was deleted that the Foo had no more")
		}
	})
}

func TestRepairThatDoesNotLastIsTriedSlowly(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		h.createFoo(newFoo("example-foo", "web", new(int32(1))))
		h.rollOut("web")
		h.ClearRequests()
		for range 6000 { // in ten minutes
			h.wait(100 * time.Millisecond)
			if *h.getDeployment("web").Spec.Replicas == 1 {
				h.changeDeployment("web", func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(5)) })
			}
		}
		h.expectWrites("patch", "deployments", 23)
		h.expectReady("example-foo", "False DeploymentContested")
		h.expectEvents("DeploymentContested", 1)
		h.expectWrites("update", "foos/status", 2) // the other one says Progressing

		h.wait(2 * time.Minute) // nobody sets the last repair back
		h.expectReplicas("web", 1)
		h.rollOut("web")
		h.expectReady("example-foo", "True Available")
		h.changeDeployment("web", func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(5)) })
		h.expectReplicas("web", 1)
	})
}

func TestTransientErrorsAreRetried(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.Fail("create", "deployments", 14, apierrors.NewInternalError(errInjected))
		h.start()
		h.createFoo(newFoo("example-foo", "web", nil))
		h.wait(70955 * time.Millisecond) // 5 + 10 + 20 + ... + 20480, and 30000
		if !h.deploymentExists("web") {
			t.Error("the 15th try did not create the Deployment")
		}
		h.expectErrors(14) // one for each failed try

		h.Fail("create", "deployments", 1, apierrors.NewInternalError(errInjected))
		h.deleteDeployment("web")
		if h.deploymentExists("web") {
			t.Fatal("the Deployment exists; want the first create to fail")
		}
		h.wait(5 * time.Millisecond)

		if !h.deploymentExists("web") {
			t.Error("after a success, the delays did not begin anew")
		}
		denied := apierrors.NewConflict(v1alpha1.Resource("foos"), "example-foo", errInjected)
		denied.ErrStatus.Message = "admission webhook x: no" // not a conflict that goes away by itself
		h.Fail("update", "foos/status", 1, denied)
		h.rollOut("web")
		h.expectErrors(16)
	})
}

func TestWhatIsNormalIsNoError(t *testing.T) {
	going := apierrors.NewForbidden(deploymentsResource, "web", errInjected)
	going.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for name, test := range map[string]struct {
		verb, resource string
		times          int
		answer         error
		writes         int // until the controller is content
	}{
		"somebody else wrote the Deployment": {"patch", "deployments", 2,
			apierrors.NewConflict(deploymentsResource, "web", errInjected), 3},
		// There is no event for that if somebody has taken off the label.
		"the Deployment goes while it is changed": {"patch", "deployments", 1,
			apierrors.NewNotFound(deploymentsResource, "web"), 2},
		"somebody else wrote the status": {"update", "foos/status", 1,
			apierrors.NewConflict(v1alpha1.Resource("foos"), "example-foo", errInjected), 2},
		"the Foo goes while its status is written": {"update", "foos/status", 1,
			apierrors.NewNotFound(v1alpha1.Resource("foos"), "example-foo"), 1},
		"the namespace goes": {"create", "deployments", 100, going, 1},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(_ *testing.T, h *harness) {
				h.start()
				h.createFoo(newFoo("example-foo", "web", new(int32(1))))
				time.Sleep(time.Minute)
				h.Fail(test.verb, test.resource, test.times, test.answer)
				h.ClearRequests()
				if test.verb == "create" {
					h.deleteDeployment("web")
				} else {
					h.changeFoo("example-foo", func(foo *v1alpha1.Foo) { foo.Spec.Replicas = new(int32(2)) })
				}
				time.Sleep(time.Hour)

				h.expectWrites(test.verb, test.resource, test.writes)
				h.expectErrors(0)
			})
		})
	}
}

func TestRefusalIsReportedAndTriedSlowly(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.Before("create", "deployments", 4, func(context.Context) error {
			denied := apierrors.NewNotFound(deploymentsResource, "what a webhook looks for")
			if tries := len(h.Requests("create", "deployments")); tries%2 == 0 {
				denied = apierrors.NewAlreadyExists(deploymentsResource, "what must be unique")
			}
			denied.ErrStatus.Message = fmt.Sprint("admission webhook x: ", len(h.Requests("create", "deployments")))
			return denied
		})
		h.start()
		h.createFoo(newFoo("example-foo", "web", nil))
		time.Sleep(50 * time.Second) // the next tries are after 15, 30 and 45 s
		h.expectReady("example-foo", "False DeploymentRejected")
		if got := fmt.Sprint(h.getFoo("example-foo").Status.Conditions); !strings.Contains(got, "x: 4") {
			t.Errorf("got conditions %s, want the API server's last words in a message", got)
		}
		h.expectEvents("DeploymentRejected", 4) // each has other words
		time.Sleep(11 * time.Second)
		h.rollOut("web")
		h.expectReady("example-foo", "True Available")

		h.Fail("patch", "deployments", 4, apierrors.NewRequestEntityTooLargeError("no")) // the same words each time
		h.changeFoo("example-foo", func(foo *v1alpha1.Foo) { foo.Spec.Replicas = new(int32(2)) })
		time.Sleep(50 * time.Second)
		h.expectWrites("patch", "deployments", 4)
		h.expectEvents("DeploymentRejected", 5)
		h.expectStatus("example-foo", "False DeploymentRejected", 1)
		time.Sleep(11 * time.Second)
		h.expectReplicas("web", 2)
	})
}

func TestRefusedFoosHoldUpNobody(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.Fail("create", "deployments", 40, apierrors.NewBadRequest("injected"))
		h.start()
		create := func(name string, count int) {
			for i := range count {
				h.createFoo(newFoo(fmt.Sprint(name, i), fmt.Sprint(name, i), nil))
			}
		}
		create("bad", 20) // more than there are workers
		h.expectReady("bad19", "False DeploymentRejected")
		h.stop()
		create("new", 3)
		h.ClearRequests()
		h.Before("get", "foos", 20, func(context.Context) error { // which comes before another Create
			time.Sleep(time.Second)
			return nil
		})
		h.start()

		h.expectWrites("create", "deployments", 3) // of the new ones, at once
	})
}

func TestLaggingInformerCausesNoWriteOfItsOwn(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		h.Lag("deployments", 5*time.Second)
		h.createFoo(newFoo("example-foo", "web", nil))
		h.changeFoo("example-foo", func(foo *v1alpha1.Foo) { foo.Labels = map[string]string{"a": "b"} })
		h.wait(4 * time.Second)
		h.expectWrites("create", "deployments", 1) // the informer does not show the Deployment yet
		h.expectWrites("get", "*", 0)

		h.wait(10 * time.Second)

		h.expectReady("example-foo", "False Progressing")
		h.expectErrors(0)
	})
}

func TestUpdateKeepsWhatTheCacheDoesNotShow(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		h.Lag("deployments", 5*time.Second)
		h.createFoo(newFoo("example-foo", "web", new(int32(1))))
		time.Sleep(time.Minute)
		h.changeDeployment("web", func(d *appsv1.Deployment) { d.Labels["team"] = "a" })
		h.changeFoo("example-foo", func(foo *v1alpha1.Foo) { foo.Spec.Replicas = new(int32(2)) })
		time.Sleep(time.Minute)

		h.expectReplicas("web", 2)
		if got := h.getDeployment("web").Labels["team"]; got != "a" {
			t.Errorf(`label "team" of others: got %q, want "a"`, got)
		}
	})
}
