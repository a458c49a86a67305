package explore_test

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

const gadgets = "testdata/gadgets.yaml"

var gadgetsResource = schema.GroupVersionResource{
	Group: "example.com", Version: "v1", Resource: "gadgets"}

type (
	object = *unstructured.Unstructured
	syncer = func(*process, object) error
	run    = func(context.Context, *rest.Config) error
)

// process is one process of a small controller.
type process struct {
	ctx        context.Context
	kube       kubernetes.Interface
	gadgets    dynamic.NamespaceableResourceInterface
	cached     cache.GenericLister // of Gadgets
	configMaps corelisters.ConfigMapLister
	memory     map[string]bool // what the process remembers
	queue      workqueue.TypedRateLimitingInterface[cache.ObjectName]
}

// program returns a controller in as few lines as that takes. It syncs each Gadget, as the API server
// has it, when it changes, or when a Deployment or a ConfigMap of its name does.
func program(sync syncer) run {
	return rawProgram(func(p *process, key cache.ObjectName) error {
		gadget, err := p.gadgets.Namespace(key.Namespace).Get(p.ctx, key.Name, metav1.GetOptions{})
		if err != nil {
			return ignoreNotFound(err)
		}
		return sync(p, gadget)
	})
}

// rawProgram returns a controller whose sync gets the names.
func rawProgram(sync func(*process, cache.ObjectName) error) run {
	return func(ctx context.Context, config *rest.Config) error {
		client, err := dynamic.NewForConfig(config)
		if err != nil {
			return err
		}
		queue := workqueue.NewTypedRateLimitingQueue(
			workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]())
		p := &process{ctx: ctx, kube: kubernetes.NewForConfigOrDie(config), queue: queue,
			gadgets: client.Resource(gadgetsResource), memory: map[string]bool{}}
		custom := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
		kube := informers.NewSharedInformerFactory(p.kube, 0)
		p.cached = custom.ForResource(gadgetsResource).Lister()
		p.configMaps = kube.Core().V1().ConfigMaps().Lister()
		add := func(object any) {
			if key, err := cache.DeletionHandlingObjectToName(object); err == nil {
				queue.Add(key)
			}
		}
		handler := cache.ResourceEventHandlerFuncs{
			AddFunc: add, UpdateFunc: func(_, object any) { add(object) }, DeleteFunc: add}
		for _, informer := range []cache.SharedIndexInformer{
			custom.ForResource(gadgetsResource).Informer(), kube.Apps().V1().Deployments().Informer(),
			kube.Core().V1().ConfigMaps().Informer(),
		} {
			if _, err := informer.AddEventHandler(handler); err != nil {
				return err
			}
		}
		custom.Start(ctx.Done())
		kube.Start(ctx.Done())
		defer custom.Shutdown()
		defer kube.Shutdown()
		context.AfterFunc(ctx, queue.ShutDown)
		custom.WaitForCacheSync(ctx.Done())
		kube.WaitForCacheSync(ctx.Done())
		for {
			key, shutdown := queue.Get()
			if shutdown {
				return ctx.Err()
			}
			if sync(p, key) != nil {
				queue.AddRateLimited(key)
			} else {
				queue.Forget(key)
			}
			queue.Done(key)
		}
	}
}

// setStatus writes a status, unless it is nil or there already.
func (p *process) setStatus(gadget object, status map[string]any) error {
	if status == nil || equality.Semantic.DeepEqual(gadget.Object["status"], status) {
		return nil
	}
	gadget.Object["status"] = status
	_, err := p.gadgets.Namespace(gadget.GetNamespace()).UpdateStatus(p.ctx, gadget, metav1.UpdateOptions{})
	return ignoreNotFound(err)
}

func ignoreNotFound(err error) error { return utilerrors.FilterOut(err, apierrors.IsNotFound) }

// childOf returns a ConfigMap of a Gadget. It has the name and the spec.value of the Gadget.
func childOf(gadget object) *corev1.ConfigMap {
	return &corev1.ConfigMap{Data: map[string]string{"value": valueOf(gadget)},
		ObjectMeta: metav1.ObjectMeta{Name: gadget.GetName(), Namespace: gadget.GetNamespace(),
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(gadget, gadget.GroupVersionKind())}}}
}
