package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/rancher/lasso/pkg/controller"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
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
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

const (
	controllerName = meaning.ControllerName
	// blockedRetryDelay is for what cannot be mended here and may not be seen either.
	blockedRetryDelay = 15 * time.Second
	// staleRetryDelay is for a cache that does not show the last write yet. Should the event of that
	// never come, the key is looked at again.
	staleRetryDelay = time.Second
	// syncTimeout bounds one sync, and so the time that a shutdown waits for the last ones.
	syncTimeout = 10 * time.Second

	controllerUIDIndex  = "controllerUID"
	deploymentNameIndex = "deploymentName"
)

var (
	deploymentKind = appsv1.SchemeGroupVersion.WithKind("Deployment")

	// errGone ends a sync that has met what is gone or going. Lasso neither logs nor retries an
	// error that wraps ErrIgnore: the event of the deletion is on its way.
	errGone = fmt.Errorf("gone, or about to go: %w", controller.ErrIgnore)
	// errStopped ends a sync that began after stop: the next process will do it.
	errStopped = fmt.Errorf("stopped: %w", controller.ErrIgnore)
)

// Controller makes the Deployments of all Foos match their specs, and reports in their statuses.
type Controller struct {
	factory          controller.SharedControllerFactory
	foos             controller.SharedController
	foosByDeployment cache.Indexer
	deployments      controller.SharedController
	deploymentLister appslisters.DeploymentLister
	deploymentsByUID cache.Indexer
	recorder         events.EventRecorder

	fooWrites, deploymentWrites *consistency.Writes

	running sync.RWMutex // held by syncs for reading, and by stop
	stopped bool
}

// NewController returns a Controller whose caches exist and can be started. Its queues, and the
// event handlers that fill them, do not exist before Run. What keeps the caches from being filled
// goes to fail.
func NewController(
	factory controller.SharedControllerFactory, recorder events.EventRecorder, fail func(error),
) (*Controller, error) {
	foos, err := newCache(factory, meaning.FooKind, fail,
		cache.Indexers{deploymentNameIndex: deploymentName})
	if err != nil {
		return nil, err
	}
	deployments, err := newCache(factory, deploymentKind, fail,
		cache.Indexers{controllerUIDIndex: controllerUID})
	if err != nil {
		return nil, err
	}
	c := &Controller{
		factory: factory, recorder: recorder,
		foosByDeployment: foos.GetIndexer(),
		deploymentsByUID: deployments.GetIndexer(),
		deploymentLister: appslisters.NewDeploymentLister(deployments.GetIndexer()),
		fooWrites:        consistency.NewWrites(foos.GetStore()),
		deploymentWrites: consistency.NewWrites(deployments.GetStore()),
	}
	if c.foos, err = factory.ForKind(meaning.FooKind); err != nil {
		return nil, err
	}
	c.deployments, err = factory.ForKind(deploymentKind)
	return c, err
}

// newCache returns the cache that the controller of kind will use, with what Lasso has no options
// for. It does not come from SharedController.Informer: that makes the deferred controller, too,
// which remembers the key of every event until it is started. A standby would do so for weeks.
func newCache(
	factory controller.SharedControllerFactory, kind schema.GroupVersionKind, fail func(error),
	indexers cache.Indexers,
) (cache.SharedIndexInformer, error) {
	informer, err := factory.SharedCacheFactory().ForKind(kind)
	if err != nil {
		return nil, err
	}
	if err := informer.SetTransform(informers.StripManagedFields); err != nil {
		return nil, err
	}
	err = informer.SetWatchErrorHandlerWithContext(
		func(ctx context.Context, reflector *cache.Reflector, err error) {
			cache.DefaultWatchErrorHandler(ctx, reflector, err)
			if !informer.HasSynced() && (apierrors.IsNotFound(err) || apierrors.IsForbidden(err)) {
				fail(err) // Lasso alone would wait for ever
			}
		})
	if err != nil {
		return nil, err
	}
	return informer, informer.AddIndexers(indexers)
}

// deploymentName indexes a Foo by the key of the Deployment that it names.
func deploymentName(object any) ([]string, error) {
	foo := object.(*v1alpha1.Foo)
	return []string{cache.NewObjectName(foo.Namespace, foo.Spec.DeploymentName).String()}, nil
}

// controllerUID indexes a Deployment by its owner.
func controllerUID(object any) ([]string, error) {
	if owner := metav1.GetControllerOfNoCopy(object.(*appsv1.Deployment)); owner != nil {
		return []string{string(owner.UID)}, nil
	}
	return nil, nil
}

// Run syncs with that many workers until ctx is done. It returns when the last sync that had
// begun is finished.
func (c *Controller) Run(ctx context.Context, workers int) error {
	c.foos.RegisterHandler(ctx, "sync-foo", controller.SharedControllerHandlerFunc(c.onFoo))
	c.deployments.RegisterHandler(ctx, "enqueue-foos",
		controller.SharedControllerHandlerFunc(c.onDeployment))
	if err := c.factory.Start(ctx, workers); err != nil && ctx.Err() == nil {
		return fmt.Errorf("starting Lasso's controllers: %w", err)
	}
	<-ctx.Done()
	c.stop()
	return nil
}

// stop waits until no sync is under way, and lets no more begin. Lasso does neither: its workers go
// on until the queue is empty, and nobody can wait for them.
func (c *Controller) stop() {
	c.running.Lock()
	defer c.running.Unlock()
	c.stopped = true
}

// onDeployment enqueues the Foo that controls the Deployment, and the Foos that name it. Of a
// Deployment that is gone, Lasso knows but the key; those that name it are all that need to know.
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

// isFoo reports whether owner refers to a Foo, of whatever version.
func isFoo(owner *metav1.OwnerReference) bool {
	gv, err := schema.ParseGroupVersion(owner.APIVersion)
	return err == nil && gv.Group == meaning.FooKind.Group && owner.Kind == meaning.FooKind.Kind
}

// onFoo syncs a Foo unless Run is over. A handler gets no context, so that of the sync begins here;
// ctx of Run is not for it: what has begun is finished.
func (c *Controller) onFoo(key string, object runtime.Object) (runtime.Object, error) {
	c.running.RLock()
	defer c.running.RUnlock()
	if c.stopped {
		return object, errStopped
	}
	name, err := cache.ParseObjectName(key)
	if err != nil {
		return object, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), syncTimeout)
	defer cancel()
	return object, c.syncHandler(ctx, name)
}

// syncHandler takes one step from what the caches show towards what the Foo of that key asks for,
// as the repository's does. An error is logged and retried by Lasso; for a retry at another time,
// and none in the log, the key is enqueued here.
func (c *Controller) syncHandler(ctx context.Context, key cache.ObjectName) error {
	if !c.fooWrites.Seen(key) || !c.deploymentWrites.Seen(key) {
		c.foos.EnqueueAfter(key.Namespace, key.Name, staleRetryDelay)
		return nil
	}
	// The object that Lasso gives to a handler was read before that check, and may be older.
	object, exists, err := c.foosByDeployment.GetByKey(key.String())
	if err != nil {
		return err
	}
	if !exists {
		c.fooWrites.Clear(key)
		c.deploymentWrites.Clear(key)
		return nil // its Deployments go with it: the garbage collector deletes them
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
		return c.reportNameTaken(ctx, foo, observed)
	}
	if observed.DeletionTimestamp == nil {
		desired := observed.DeepCopy()
		meaning.SetOwnedFields(desired, foo)
		if !equality.Semantic.DeepEqual(observed, desired) {
			return c.updateDeployment(ctx, foo, desired)
		}
		if meaning.RolledOut(observed) {
			if err := c.deleteOtherDeployments(ctx, foo); err != nil {
				return err
			}
		}
	}
	status := meaning.DesiredStatus(foo, observed, meaning.ReadyCondition(observed))
	return c.updateStatus(ctx, foo, status)
}
