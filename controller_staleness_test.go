package main

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"example.com/sample-controller/internal/consistency"
	"example.com/sample-controller/internal/fakes"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

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
