package main

import (
	"reflect"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	kubeinformers "k8s.io/client-go/informers"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"

	fooinformers "example.com/sample-controller/pkg/generated/informers/externalversions"
	informers "example.com/sample-controller/pkg/generated/informers/externalversions/samplecontroller/v1alpha1"
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

type keptFoos struct {
	informers.FooInformer
	*keeper
}

func (k keptFoos) Informer() cache.SharedIndexInformer { return k.keeper }

type keptDeployments struct {
	appsinformers.DeploymentInformer
	*keeper
}

func (k keptDeployments) Informer() cache.SharedIndexInformer { return k.keeper }

func TestDeletionOfWhichOnlyTheKeyIsKnown(t *testing.T) {
	foos := fooinformers.NewSharedInformerFactory(nil, 0).Samplecontroller().V1alpha1().Foos()
	deployments := kubeinformers.NewSharedInformerFactory(nil, 0).Apps().V1().Deployments()
	ofFoos := &keeper{SharedIndexInformer: foos.Informer()}
	ofDeployments := &keeper{SharedIndexInformer: deployments.Informer()}
	c, err := NewController(nil, nil, informers.ToTypedFooInformer(keptFoos{foos, ofFoos}),
		appsinformers.ToTypedDeploymentInformer(keptDeployments{deployments, ofDeployments}),
		events.NewFakeRecorder(1))
	if err != nil {
		t.Fatal(err)
	}

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
