package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/rancher/lasso/pkg/controller"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	appslisters "k8s.io/client-go/listers/apps/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"

	"example.com/sample-controller/examples/internal/meaning"
	"example.com/sample-controller/internal/consistency"
	"example.com/sample-controller/internal/informers"
	"example.com/sample-controller/internal/patch"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

const (
	controllerName = meaning.ControllerName
	// blockedRetryDelay is for obstacles that may go away without an event.
	blockedRetryDelay = 15 * time.Second
	// staleRetryDelay is how long a key waits if the cache may not show the last write yet. The
	// event of a write may never come.
	staleRetryDelay = time.Second
	// syncTimeout limits one sync, and so the time that a shutdown waits for the last syncs.
	syncTimeout = 10 * time.Second

	controllerUIDIndex  = "controllerUID"
	deploymentNameIndex = "deploymentName"
)

// With the resource of a kind, Lasso makes caches and controllers without a request.
var (
	fooResource        = meaning.FooKind.GroupVersion().WithResource("foos")
	deploymentKind     = appsv1.SchemeGroupVersion.WithKind("Deployment")
	deploymentResource = appsv1.SchemeGroupVersion.WithResource("deployments")
)

// Controller makes Deployments match the specs of their Foos, and writes the Foos' statuses.
type Controller struct {
	factory          controller.SharedControllerFactory
	foos             controller.SharedController
	foosByDeployment cache.Indexer
	deployments      controller.SharedController
	deploymentLister appslisters.DeploymentLister
	deploymentsByUID cache.Indexer
	recorder         events.EventRecorder

	fooWrites, deploymentWrites *consistency.Writes
	repairs                     *patch.Repairs

	running sync.RWMutex // held by syncs for reading, and by stop for writing
	stopped bool
}

// NewController returns a Controller with caches that newCache has made. Its queues, and the event
// handlers that fill them, do not exist before Run.
func NewController(
	factory controller.SharedControllerFactory, foos, deployments cache.SharedIndexInformer,
	recorder events.EventRecorder,
) *Controller {
	return &Controller{
		factory: factory, recorder: recorder,
		foos:             factory.ForResourceKind(fooResource, meaning.FooKind.Kind, true),
		foosByDeployment: foos.GetIndexer(),
		deployments:      factory.ForResourceKind(deploymentResource, deploymentKind.Kind, true),
		deploymentsByUID: deployments.GetIndexer(),
		deploymentLister: appslisters.NewDeploymentLister(deployments.GetIndexer()),
		fooWrites:        consistency.NewWrites(foos.GetStore()),
		deploymentWrites: consistency.NewWrites(deployments.GetStore()),
		repairs:          patch.NewRepairs(),
	}
}

// newCache returns the cache that the controller of kind will use, with settings for which Lasso
// has no options. It does not use SharedController.Informer, which also creates the deferred
// controller: that remembers the key of every event until it is started, on a standby for weeks.
func newCache(
	factory controller.SharedControllerFactory, resource schema.GroupVersionResource, kind string,
	indexers cache.Indexers,
) (cache.SharedIndexInformer, error) {
	informer, err := factory.SharedCacheFactory().ForResourceKind(resource, kind, true)
	if err != nil {
		return nil, err
	}
	if err := informer.SetTransform(informers.StripManagedFields); err != nil {
		return nil, err
	}
	return informer, informer.AddIndexers(indexers)
}

// deploymentName indexes a Foo by the key of the Deployment that it names.
func deploymentName(object any) ([]string, error) {
	foo := object.(*v1alpha1.Foo)
	return []string{cache.NewObjectName(foo.Namespace, foo.Spec.DeploymentName).String()}, nil
}

// controllerUID indexes a Deployment by the UID of its controller.
func controllerUID(object any) ([]string, error) {
	if owner := metav1.GetControllerOfNoCopy(object.(*appsv1.Deployment)); owner != nil {
		return []string{string(owner.UID)}, nil
	}
	return nil, nil
}

// Run syncs with the given number of workers until ctx is done. It returns when every sync that has
// begun is finished.
func (c *Controller) Run(ctx context.Context, workers int) error {
	defer c.stop()
	c.foos.RegisterHandler(ctx, "sync-foo", controller.SharedControllerHandlerFunc(c.onFoo))
	c.deployments.RegisterHandler(ctx, "enqueue-foos",
		controller.SharedControllerHandlerFunc(c.onDeployment))
	if err := c.factory.Start(ctx, workers); err != nil && ctx.Err() == nil {
		return fmt.Errorf("starting Lasso's controllers: %w", err)
	}
	<-ctx.Done()
	return nil
}

// stop waits until no sync is running, and lets no new one begin. Lasso does neither: its workers
// go on until the queue is empty, and it has no way to wait for them.
func (c *Controller) stop() {
	c.running.Lock()
	defer c.running.Unlock()
	c.stopped = true
}

// onDeployment enqueues the Foo that controls the Deployment, and the Foos that name it. If the
// Deployment is gone, Lasso has only its key. Then only the Foos that name it need a sync.
func (c *Controller) onDeployment(key string, object runtime.Object) (runtime.Object, error) {
	foos, err := c.foosByDeployment.IndexKeys(deploymentNameIndex, key)
	if err != nil {
		return object, fmt.Errorf("finding the Foos of the Deployment: %w", err)
	}
	if deployment, ok := object.(*appsv1.Deployment); ok {
		owner := metav1.GetControllerOfNoCopy(deployment)
		if owner != nil && isFoo(owner) {
			foos = append(foos, cache.NewObjectName(deployment.Namespace, owner.Name).String())
		}
	}
	for _, foo := range foos {
		c.foos.EnqueueKey(foo) // not Enqueue, which counts and delays each call like a failure
	}
	return object, nil
}

// isFoo reports whether owner refers to a Foo, of any version.
func isFoo(owner *metav1.OwnerReference) bool {
	gv, err := schema.ParseGroupVersion(owner.APIVersion)
	return err == nil && gv.Group == meaning.FooKind.Group && owner.Kind == meaning.FooKind.Kind
}

// onFoo syncs a Foo unless stop was called. Lasso passes no context to a handler, so the context of
// the sync begins here. Run's ctx must not cancel it: a sync that has begun is finished.
func (c *Controller) onFoo(key string, object runtime.Object) (runtime.Object, error) {
	c.running.RLock()
	defer c.running.RUnlock()
	if c.stopped {
		return object, nil // the next process will do it
	}
	name, err := cache.ParseObjectName(key)
	if err != nil {
		return object, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), syncTimeout)
	defer cancel()
	return object, c.syncHandler(ctx, name)
}

// syncHandler takes one step from the state in the caches towards what the Foo of key asks for, as
// the repository's own does. Lasso logs an error and retries; a conflict, it only retries. For a
// retry at another time, without a log message, the code enqueues the key itself.
func (c *Controller) syncHandler(ctx context.Context, key cache.ObjectName) error {
	if !c.fooWrites.Seen(key) || !c.deploymentWrites.Seen(key) {
		c.foos.EnqueueAfter(key.Namespace, key.Name, staleRetryDelay)
		return nil
	}
	// Lasso read the object that it passes to a handler before that check. It may be older.
	object, exists, err := c.foosByDeployment.GetByKey(key.String())
	if err != nil {
		return err
	}
	if !exists {
		c.fooWrites.Clear(key)
		c.deploymentWrites.Clear(key)
		c.repairs.Clear(key)
		return nil // the garbage collector deletes its Deployments
	}
	foo := object.(*v1alpha1.Foo)
	if foo.DeletionTimestamp != nil {
		return c.syncStatusOnly(ctx, foo)
	}
	observed, err := c.deploymentLister.Deployments(foo.Namespace).Get(foo.Spec.DeploymentName)
	if apierrors.IsNotFound(err) {
		return c.createDeployment(ctx, foo)
	}
	if err != nil {
		return err
	}
	if !metav1.IsControlledBy(observed, foo) {
		return c.updateStatus(ctx, foo, meaning.DesiredStatus(foo, nil, meaning.NameTaken(observed)))
	}
	if observed.DeletionTimestamp == nil {
		return c.repairDeployment(ctx, foo, observed)
	}
	status := meaning.DesiredStatus(foo, observed, meaning.ReadyCondition(observed))
	return c.updateStatus(ctx, foo, status)
}
