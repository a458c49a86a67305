package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	kubeinformers "k8s.io/client-go/informers"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"

	"example.com/sample-controller/internal/consistency"
	"example.com/sample-controller/internal/fakes"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	fooinformers "example.com/sample-controller/pkg/generated/informers/externalversions"
	informers "example.com/sample-controller/pkg/generated/informers/externalversions/samplecontroller/v1alpha1"
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
		h.answer("update", "deployments", 1, apierrors.NewNotFound(deploymentsResource, "web"))
		h.start()
		h.createFoo(foo)
		time.Sleep(2 * time.Second)

		if got := h.writes("update", "deployments"); got != 2 {
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

func TestLaggingInformerCausesNoWriteOfItsOwn(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		fakes.Lag(t, &h.kube.Fake, "deployments", 5*time.Second)
		h.start()
		h.createFoo(newFoo("example-foo", "web", nil))
		h.changeFoo("example-foo", func(foo *v1alpha1.Foo) { foo.Labels = map[string]string{"a": "b"} })
		time.Sleep(4 * time.Second)
		synctest.Wait()
		if got := h.writes("create", "deployments"); got != 1 {
			t.Errorf("creates before the informer shows the Deployment: got %d, want 1", got)
		}

		time.Sleep(10 * time.Second)
		synctest.Wait()

		if got := h.ready("example-foo"); got != "False Progressing" {
			t.Errorf(`Ready: got %q, want "False Progressing"`, got)
		}
		if got := h.errors.Load(); got != 0 {
			t.Errorf("errors reported: got %d, want 0", got)
		}
	})
}

func TestCacheHoldsOnlyDeploymentsOfFoos(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.createDeployment(foreignDeployment(nil))
		factory, _ := newInformerFactories(&clients{kube: h.kube, foo: h.foo}, &h.options, nil)
		deployments := factory.Apps().V1().Deployments().Informer()
		factory.StartWithContext(t.Context())
		h.start()
		h.createFoo(newFoo("example-foo", "of-a-foo", nil))

		if got := deployments.GetStore().ListKeys(); !slices.Equal(got, []string{"default/of-a-foo"}) {
			t.Errorf("keys in the cache: got %v, want [default/of-a-foo]", got)
		}
	})
}

// TestTwoProcessesDoTheSameWorkTwice shows why there is leader election. Without it, work is wasted
// but nothing breaks: the API server refuses the second Create.
func TestTwoProcessesDoTheSameWorkTwice(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		// Each process tries to create the Deployment before it can see the other's.
		fakes.Lag(t, &h.kube.Fake, "deployments", 5*time.Second)
		h.start()
		h.start()
		h.createFoo(newFoo("example-foo", "web", nil))

		if got := h.writes("create", "deployments"); got != 2 {
			t.Errorf("creates: got %d, want 2, one from each process", got)
		}
	})
}

// loseWatch makes the next watch of Deployments show no events. The returned function ends that
// watch with an error, and the informer lists again.
func (h *harness) loseWatch() (relist func()) {
	broken, lost := make(chan struct{}), false
	once := func(clienttesting.Action) (bool, watch.Interface, error) {
		if lost {
			return false, nil, nil
		}
		lost = true
		source := watch.NewFake()
		go func() {
			<-broken
			source.Error(&apierrors.NewResourceExpired("injected").ErrStatus)
		}()
		return true, source, nil
	}
	h.kube.PrependWatchReactor("deployments", once)
	return func() { close(broken) }
}

func TestMissedDeletionIsNoticed(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.createFoo(newFoo("example-foo", "web", nil))
		foo := h.getFoo("example-foo")
		h.createDeployment(newDeployment(foo))
		relist := h.loseWatch()
		h.start()
		h.deleteDeployment("web")
		if h.deploymentExists("web") {
			t.Fatal("the Deployment is back: the watch shows events")
		}

		relist()
		time.Sleep(time.Minute)
		synctest.Wait()

		if !h.deploymentExists("web") {
			t.Error("the Deployment did not come back")
		}
	})
}

func TestDeploymentThatNoWatchEverShowedComesBack(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		relist := h.loseWatch()
		h.start()
		h.createFoo(newFoo("example-foo", "web", nil))
		h.deleteDeployment("web")
		time.Sleep(10 * time.Second)
		relist()
		time.Sleep(time.Minute)
		synctest.Wait()

		if !h.deploymentExists("web") {
			t.Error("the Deployment did not come back")
		}
	})
}

func TestFooOfTheSameNameDoesNotInheritAStatus(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		fakes.Lag(t, &h.foo.Fake, "foos", 5*time.Second)
		h.start()
		h.createFoo(newFoo("example-foo", "web", nil))
		time.Sleep(time.Minute)
		h.deleteFoo("example-foo") // the informer shows neither this nor the next create yet
		successor := newFoo("example-foo", "web", nil)
		successor.UID = "uid-of-its-successor"
		h.createFoo(successor)

		h.rollOut("web") // the Deployment of the deleted Foo

		if got := h.ready("example-foo"); got != "absent" {
			t.Errorf(`Ready of the successor: got %q, want "absent"`, got)
		}
	})
}

func TestWriteIsLookedAtOnceMoreIfNoSyncHasSeenIt(t *testing.T) {
	for name, test := range map[string]struct{ sync, queued int }{
		"no sync has seen it": {0, 1},
		"a sync has seen it":  {1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				foo := newFoo("example-foo", "web", nil)
				store := cache.NewStore(cache.MetaNamespaceKeyFunc)
				store.Bookmark("10")
				c := &Controller{
					deploymentWrites: consistency.NewWrites(store),
					queue: workqueue.NewTypedRateLimitingQueue(
						workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]()),
				}
				defer c.queue.ShutDown()
				c.recordWrite(t.Context(), foo, &appsv1.Deployment{
					ObjectMeta: metav1.ObjectMeta{ResourceVersion: "10"},
				})
				for range test.sync {
					c.deploymentWrites.Seen(cache.MetaObjectToName(foo))
				}
				time.Sleep(time.Minute)
				synctest.Wait()

				if got := c.queue.Len(); got != test.queued {
					t.Errorf("keys in the queue: got %d, want %d", got, test.queued)
				}
			})
		})
	}
}

func TestDeploymentOfAFooThatIsGoneIsNotMadeAgain(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		fakes.Lag(t, &h.foo.Fake, "foos", 5*time.Second)
		h.start()
		h.createFoo(newFoo("example-foo", "web", nil))
		time.Sleep(time.Minute)
		h.deleteFoo("example-foo") // the informer does not show this yet
		h.clearRequests()

		h.deleteDeployment("web") // as the garbage collector does

		if got := h.writes("create", "deployments"); got != 0 {
			t.Errorf("creates for a deleted Foo: got %d, want 0", got)
		}
	})
}

func TestDeploymentOfAFormerNameIsNotMadeAgain(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		fakes.Lag(t, &h.foo.Fake, "foos", 5*time.Second)
		h.start()
		h.createFoo(newFoo("example-foo", "old", nil))
		time.Sleep(time.Minute)
		h.changeFoo("example-foo", func(foo *v1alpha1.Foo) { foo.Spec.DeploymentName = "new" })
		h.clearRequests()

		h.deleteDeployment("old") // the informer does not show yet that the Foo has changed

		if got := h.writes("create", "deployments"); got != 0 {
			t.Errorf("creates under the former name: got %d, want 0", got)
		}
		time.Sleep(time.Minute)
		if h.deploymentExists("old") || !h.deploymentExists("new") {
			t.Error("in the end, want the new Deployment, and not the old one")
		}
	})
}

func TestFormerDeploymentStaysIfTheFooHasItsNameAgain(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		fakes.Lag(t, &h.foo.Fake, "foos", 5*time.Second)
		h.start()
		h.createFoo(newFoo("example-foo", "old", new(int32(1))))
		time.Sleep(time.Minute)
		h.rollOut("old")
		h.changeFoo("example-foo", func(foo *v1alpha1.Foo) { foo.Spec.DeploymentName = "new" })
		time.Sleep(time.Minute)
		h.changeFoo("example-foo", func(foo *v1alpha1.Foo) { foo.Spec.DeploymentName = "old" })

		h.rollOut("new") // the informer does not show yet that the Foo has changed again

		if !h.deploymentExists("old") {
			t.Error("the Deployment that the Foo asks for was deleted")
		}
		time.Sleep(time.Minute)
		if !h.deploymentExists("old") || h.deploymentExists("new") {
			t.Error("in the end, want the old Deployment, and not the new one")
		}
	})
}

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

// FuzzHandleObject passes the event handlers Deployments with any owner, and tombstones with and
// without a Deployment. The handlers must not panic. They must enqueue a key if the owner is a Foo,
// of any version, and otherwise none.
func FuzzHandleObject(f *testing.F) {
	const current = "samplecontroller.k8s.io/v1alpha1"
	f.Add("default", "web", current, "Foo", "example-foo", true, "default/web")
	f.Add("default", "web", current, "Foo", "example-foo", false, "a/b/c")
	f.Add("default", "web", "samplecontroller.k8s.io/v9", "Foo", "example-foo", true, "")
	f.Add("default", "web", current, "Bar", "example-foo", true, "default/")
	f.Add("default", "web", "apps/v1", "Deployment", "example-foo", true, "/")
	f.Add("default", "web", "other.example.com/v1", "Foo", "example-foo", true, "web")
	f.Add("", "", "a/b/c", "", "", true, "")
	controller, _, handler := newHandlers(f)
	f.Fuzz(func(t *testing.T, ns, name, apiVersion, kind, owner string, isController bool,
		key string) {
		deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
		deployment.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: apiVersion, Kind: kind, Name: owner, Controller: &isController},
		}
		var want []cache.ObjectName
		group, version, found := strings.Cut(apiVersion, "/")
		if group == "samplecontroller.k8s.io" && found && !strings.Contains(version, "/") &&
			kind == "Foo" && isController {
			want = []cache.ObjectName{{Namespace: ns, Name: owner}}
		}
		expect := func(event string, want []cache.ObjectName) {
			t.Helper()
			if got := drain(controller); !slices.Equal(got, want) {
				t.Errorf("%s: keys in the queue: got %v, want %v", event, got, want)
			}
		}
		handler.OnAdd(deployment, false)
		expect("added", want)
		handler.OnUpdate(&appsv1.Deployment{}, deployment)
		expect("updated", want)
		handler.OnDelete(deployment)
		expect("deleted", want)
		handler.OnDelete(cache.DeletedFinalStateUnknown{Key: key, Obj: deployment})
		expect("tombstone", want)
		handler.OnDelete(cache.DeletedFinalStateUnknown{Key: key})
		expect("tombstone without a Deployment", nil)
	})
}

// newHandlers returns a Controller and the handlers that client-go would call for events of Foos
// and of Deployments.
func newHandlers(t testing.TB) (c *Controller, foos, deployments cache.ResourceEventHandler) {
	t.Helper()
	clients := fakes.New()
	kubeFactory := kubeinformers.NewSharedInformerFactory(clients.Kube, 0)
	fooFactory := fooinformers.NewSharedInformerFactory(clients.Foo, 0)
	ofFoos := keptFoos{TypedFooInformer: fooFactory.Samplecontroller().V1alpha1().Foos()}
	ofFoos.kept = &handlerKeeper{SharedIndexInformer: ofFoos.Informer()}
	ofDeployments := keptDeployments{TypedDeploymentInformer: kubeFactory.Apps().V1().Deployments()}
	ofDeployments.kept = &handlerKeeper{SharedIndexInformer: ofDeployments.Informer()}
	c, err := NewController(
		clients.Kube, clients.Foo, ofFoos, ofDeployments, events.NewFakeRecorder(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.queue.ShutDown)
	return c, ofFoos.kept.handler, ofDeployments.kept.handler
}

// keptFoos is a Foo informer whose handler a test can call.
type keptFoos struct {
	informers.TypedFooInformer
	kept *handlerKeeper
}

func (f keptFoos) TypedInformer() informers.FooIndexInformer {
	return cache.NewTypedSharedIndexInformer[*v1alpha1.Foo](f.kept)
}

// keptDeployments is a Deployment informer whose handler a test can call.
type keptDeployments struct {
	appsinformers.TypedDeploymentInformer
	kept *handlerKeeper
}

func (d keptDeployments) TypedInformer() appsinformers.DeploymentIndexInformer {
	return cache.NewTypedSharedIndexInformer[*appsv1.Deployment](d.kept)
}

// handlerKeeper keeps the handler that is added to an informer.
type handlerKeeper struct {
	cache.SharedIndexInformer
	handler cache.ResourceEventHandler
}

func (k *handlerKeeper) AddEventHandlerWithOptions(
	handler cache.ResourceEventHandler, options cache.HandlerOptions,
) (cache.ResourceEventHandlerRegistration, error) {
	k.handler = handler
	return k.SharedIndexInformer.AddEventHandlerWithOptions(handler, options)
}

// drain takes all keys from the queue of controller and returns them.
func drain(controller *Controller) (keys []cache.ObjectName) {
	for controller.queue.Len() > 0 {
		key, _ := controller.queue.Get()
		controller.queue.Done(key)
		keys = append(keys, key)
	}
	return keys
}
