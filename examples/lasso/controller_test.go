package main

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/internal/consistency"
	"example.com/sample-controller/internal/patch"
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
