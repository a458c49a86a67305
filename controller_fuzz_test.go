package main

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeinformers "k8s.io/client-go/informers"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"

	"example.com/sample-controller/internal/fakes"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	fooinformers "example.com/sample-controller/pkg/generated/informers/externalversions"
	informers "example.com/sample-controller/pkg/generated/informers/externalversions/samplecontroller/v1alpha1"
)

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
