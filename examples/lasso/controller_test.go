package main

import (
	"errors"
	"slices"
	"testing"

	"github.com/rancher/lasso/pkg/controller"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/examples/internal/meaning"
	"example.com/sample-controller/internal/consistency"
	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// queue stands in for the shared controller of Foos, and records what is enqueued.
type queue struct {
	controller.SharedController
	keys []string
}

func (q *queue) EnqueueKey(key string) { q.keys = append(q.keys, key) }

// newTestController returns a Controller whose cache has Foos of these names. Each Foo names the
// Deployment "web".
func newTestController(t *testing.T, foos ...string) (*Controller, *queue) {
	t.Helper()
	q := &queue{}
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc,
		cache.Indexers{deploymentNameIndex: deploymentName})
	for _, name := range foos {
		must.Do(t, indexer.Add(&v1alpha1.Foo{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Spec:       v1alpha1.FooSpec{DeploymentName: "web"},
		}))
	}
	return &Controller{
		foos: q, foosByDeployment: indexer,
		fooWrites: consistency.NewWrites(indexer), deploymentWrites: consistency.NewWrites(indexer),
	}, q
}

func TestDeploymentEnqueuesItsOwnerAndTheFoosThatNameIt(t *testing.T) {
	c, q := newTestController(t, "waits")
	owner := &v1alpha1.Foo{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "owner"}}
	owner.Spec.DeploymentName = "web"

	must.Get(c.onDeployment("default/web", meaning.NewDeployment(owner)))(t)

	if want := []string{"default/waits", "default/owner"}; !slices.Equal(q.keys, want) {
		t.Errorf("got the keys %v, want %v", q.keys, want)
	}
}

func TestDeploymentOfAnotherKindOfOwnerEnqueuesNothing(t *testing.T) {
	c, q := newTestController(t)
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "web", OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "example.com/v1", Kind: "Foo", Name: "other", Controller: new(true),
		}},
	}}

	must.Get(c.onDeployment("default/web", deployment))(t)

	if len(q.keys) > 0 {
		t.Errorf("got the keys %v, want none", q.keys)
	}
}

func TestDeletedDeploymentEnqueuesTheFoosThatNamedIt(t *testing.T) {
	c, q := newTestController(t, "owner", "waits")

	must.Get(c.onDeployment("default/web", nil))(t)

	slices.Sort(q.keys)
	if want := []string{"default/owner", "default/waits"}; !slices.Equal(q.keys, want) {
		t.Errorf("got the keys %v, want %v", q.keys, want)
	}
}

func TestStopWaitsForTheSyncUnderWayAndLetsNoneBegin(t *testing.T) {
	c, _ := newTestController(t)
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

	if _, err := c.onFoo("default/web", &v1alpha1.Foo{}); !errors.Is(err, errStopped) {
		t.Errorf("got the error %v, want %v", err, errStopped)
	}
}

func TestSyncTakesTheFooFromTheCacheAndNotFromLasso(t *testing.T) {
	c, _ := newTestController(t)
	older := &v1alpha1.Foo{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "deleted"}}
	key := cache.MetaObjectToName(older)
	c.deploymentWrites.WroteAt(key, "0")

	must.Get(c.onFoo(key.String(), older))(t)

	if c.deploymentWrites.HasWritten(key) {
		t.Error("the Foo is gone, but its writes are still recorded")
	}
}

func TestLassoTakesAnIgnoredErrorForSuccess(t *testing.T) {
	handler := &controller.SharedHandler{}
	handler.Register(t.Context(), "", controller.SharedControllerHandlerFunc(
		func(_ string, object runtime.Object) (runtime.Object, error) { return object, errGone }))

	if err := handler.OnChange("default/web", &v1alpha1.Foo{}); err != nil {
		t.Errorf("got %v, want no error", err)
	}
}
