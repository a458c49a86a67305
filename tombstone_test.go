package main

import (
	"reflect"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"

	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
	fooinformers "example.com/sample-controller/pkg/generated/informers/externalversions"
)

// keeper is an informer that keeps its event handler, so that a test can call it.
type keeper struct {
	cache.SharedIndexInformer
	handler cache.ResourceEventHandler
}

func (k *keeper) AddEventHandlerWithOptions(
	handler cache.ResourceEventHandler, options cache.HandlerOptions,
) (cache.ResourceEventHandlerRegistration, error) {
	k.handler = handler
	return k.SharedIndexInformer.AddEventHandlerWithOptions(handler, options)
}

// newKeeper returns one of objects like that one. It must not be started.
func newKeeper(object runtime.Object) *keeper {
	return &keeper{SharedIndexInformer: cache.NewSharedIndexInformer(nil, object, 0, cache.Indexers{})}
}

func TestDeletionOfWhichOnlyTheKeyIsKnown(t *testing.T) {
	foos := fooinformers.NewSharedInformerFactory(nil, 0)
	deployments := kubeinformers.NewSharedInformerFactory(nil, 0)
	ofFoos, ofDeployments := newKeeper(&v1alpha1.Foo{}), newKeeper(&appsv1.Deployment{})
	foos.InformerFor(&v1alpha1.Foo{},
		func(clientset.Interface, time.Duration) cache.SharedIndexInformer { return ofFoos })
	deployments.InformerFor(&appsv1.Deployment{},
		func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer { return ofDeployments })
	c := must.Get(NewController(nil, nil, foos.Samplecontroller().V1alpha1().Foos(),
		deployments.Apps().V1().Deployments(), events.NewFakeRecorder(1)))(t)
	must.Get(c.addHandlers())(t)

	ofDeployments.handler.OnDelete(cache.DeletedFinalStateUnknown{Key: "default/web"})
	ofFoos.handler.OnDelete(cache.DeletedFinalStateUnknown{Key: "default/example-foo"})
	c.queue.ShutDown() // so that Get does not wait if there is none
	got, _ := c.queue.Get()
	if want := cache.NewObjectName("default", "example-foo"); got != want || c.queue.Len() > 0 {
		t.Errorf("queue: got %v and %d more keys, want %v", got, c.queue.Len(), want)
	}
}

// Otherwise the controller's memory would grow with each Foo that there ever was.
func TestNothingIsRememberedOfAFooThatIsGone(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		h.createFoo(newFoo("example-foo", "web", new(int32(1))))
		h.changeDeployment("web", func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(9)) })
		h.deleteFoo("example-foo")

		c := h.controller
		for _, notes := range []any{c.fooWrites, c.deploymentWrites, c.repairs} {
			for field, value := range reflect.ValueOf(notes).Elem().Fields() {
				if value.Kind() == reflect.Map && value.Len() > 0 {
					t.Errorf("%T.%s still has %v", notes, field.Name, value)
				}
			}
		}
	})
}
