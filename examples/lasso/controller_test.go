package main

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rancher/lasso/pkg/controller"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/internal/consistency"
	"example.com/sample-controller/internal/patch"
	"example.com/sample-controller/internal/testing/fakes"
	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// newTestController returns a Controller whose cache has no Foo.
func newTestController() *Controller {
	none := cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)
	return &Controller{foosByDeployment: none, fooWrites: consistency.NewWrites(none),
		deploymentWrites: consistency.NewWrites(none), repairs: patch.NewRepairs()}
}

func TestStopWaitsForTheSyncUnderWayAndLetsNoneBegin(t *testing.T) {
	c := newTestController()
	c.running.RLock() // as a sync does
	stopped := make(chan struct{})
	go func() {
		c.stop()
		close(stopped)
	}()
	for c.running.TryRLock() { // until stop waits
		c.running.RUnlock()
	}
	select {
	case <-stopped:
		t.Error("stop returned while a sync was under way")
	default:
	}

	c.running.RUnlock()
	<-stopped

	key := cache.NewObjectName("default", "web")
	c.deploymentWrites.WroteAt(key, "0")
	must.Get(c.onFoo(key.String(), nil))(t)
	if !c.deploymentWrites.HasWritten(key) {
		t.Error("a sync has found that the Foo is gone, although it must not begin")
	}
}

func TestSyncTakesTheFooFromTheCacheAndNotFromLasso(t *testing.T) {
	c := newTestController()
	older := &v1alpha1.Foo{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "deleted"}}
	key := cache.MetaObjectToName(older)
	c.deploymentWrites.WroteAt(key, "0")

	must.Get(c.onFoo(key.String(), older))(t)

	if c.deploymentWrites.HasWritten(key) {
		t.Error("the Foo is gone, but its writes are still recorded")
	}
}

// A controller is deferred: a kind is watched if it has a handler. All who ask for a kind share its
// controller, and its handlers share a queue: when one fails, all are called again. ErrIgnore is no
// failure. Code enqueues a key at once, or as after a failure, or later.
func TestWhatTheControllerOfAKindDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := fakes.New(t, "../../artifacts/examples/crd.yaml")
		factory := must.Get(newFactory(server.Config, ""))(t)
		foos := must.Get(factory.ForObject(&v1alpha1.Foo{}))(t)
		must.Get(factory.ForObject(&appsv1.Deployment{}))(t) // which gets no handler
		errs := map[string]error{"failed": errors.New("injected"), "ignored": controller.ErrIgnore}
		calls := make(chan string, 10)
		for _, name := range []string{"one ", "two "} {
			must.Get(factory.ForObject(&v1alpha1.Foo{}))(t).RegisterHandler(t.Context(), name,
				controller.SharedControllerHandlerFunc(func(key string, foo runtime.Object) (runtime.Object, error) {
					calls <- name + key
					err := errs[key]
					delete(errs, key) // it fails only once
					return foo, err
				}))
		}
		must.Do(t, factory.Start(t.Context(), 1))
		if got := server.Requests("watch", "*"); len(got) != 1 || got[0].Resource != fooResource {
			t.Errorf("got %d watches, want that of Foos", len(got))
		}
		after := func(wait time.Duration, want ...string) {
			t.Helper()
			time.Sleep(wait) // of the bubble's clock
			synctest.Wait()
			var got []string
			for len(calls) > 0 {
				got = append(got, <-calls)
			}
			if !slices.Equal(got, want) {
				t.Errorf("got the calls %q, want %q", got, want)
			}
		}
		after(0) // there is a queue now
		foos.EnqueueKey("failed")
		after(time.Hour, "one failed", "two failed", "one failed", "two failed")
		foos.EnqueueKey("ignored")
		after(time.Hour, "one ignored", "two ignored")
		foos.Enqueue("", "limited")
		after(5*time.Millisecond - 1)
		after(1, "one limited", "two limited")
		foos.EnqueueAfter("", "late", time.Hour)
		after(time.Hour - 1)
		after(1, "one late", "two late")
	})
}
