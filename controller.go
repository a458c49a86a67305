package main

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	"k8s.io/client-go/kubernetes"
	appslisters "k8s.io/client-go/listers/apps/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"example.com/sample-controller/internal/consistency"
	"example.com/sample-controller/internal/fairqueue"
	"example.com/sample-controller/internal/patch"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
	informers "example.com/sample-controller/pkg/generated/informers/externalversions/samplecontroller/v1alpha1"
	listers "example.com/sample-controller/pkg/generated/listers/samplecontroller/v1alpha1"
)

const (
	// After an error, a key is retried after 5ms, 10ms, 20ms, 40ms, 80ms, 160ms, 320ms, 640ms,
	// 1.28s, 2.56s, 5.12s, 10.24s, 20.48s, 30s, 30s, ... until a sync succeeds.
	minRetryDelay = 5 * time.Millisecond
	maxRetryDelay = 30 * time.Second
	// blockedRetryDelay is for obstacles that may go away without an event: the API server refuses
	// the Deployment, or the name belongs to a Deployment that the informer does not select.
	blockedRetryDelay = 15 * time.Second
	// staleRetryDelay is how long a key waits if the cache may not show the last write yet. The
	// event of a write may never come: an object that is created and deleted while the watch is
	// down leaves no trace in the informer.
	staleRetryDelay = time.Second
	// syncTimeout limits one sync, and so the time that a shutdown waits for the last syncs.
	syncTimeout = 10 * time.Second

	controllerUIDIndex  = "controllerUID"
	deploymentNameIndex = "deploymentName"
)

// Controller makes Deployments match the specs of their Foos, and writes the Foos' statuses.
type Controller struct {
	kubeClient kubernetes.Interface
	fooClient  clientset.Interface
	recorder   events.EventRecorder

	foos             listers.FooLister
	foosByDeployment cache.TypedIndexer[*v1alpha1.Foo]
	deployments      appslisters.DeploymentLister
	deploymentsByUID cache.TypedIndexer[*appsv1.Deployment]
	addHandlers      func() ([]cache.DoneChecker, error) // called by Run: a standby's queue stays empty
	fooWrites        *consistency.Writes
	deploymentWrites *consistency.Writes
	repairs          *patch.Repairs

	// queue holds keys, not objects: a Foo waits there only once, however many events it gets, and
	// the sync reads the newest state. The queue never hands one key to two workers at a time.
	queue workqueue.TypedRateLimitingInterface[cache.ObjectName]
}

// NewController returns a Controller that reads from the two informers and writes through the two
// clients. The informers must not be started yet.
func NewController(
	kubeClient kubernetes.Interface,
	fooClient clientset.Interface,
	foos informers.TypedFooInformer,
	deployments appsinformers.TypedDeploymentInformer,
	recorder events.EventRecorder,
) (*Controller, error) {
	c := &Controller{
		kubeClient:       kubeClient,
		fooClient:        fooClient,
		recorder:         recorder,
		foos:             foos.Lister(),
		foosByDeployment: foos.TypedInformer().GetTypedIndexer(),
		deployments:      deployments.Lister(),
		deploymentsByUID: deployments.TypedInformer().GetTypedIndexer(),
		fooWrites:        consistency.NewWrites(foos.Informer().GetStore()),
		deploymentWrites: consistency.NewWrites(deployments.Informer().GetStore()),
		repairs:          patch.NewRepairs(),
	}
	c.queue = fairqueue.New(controllerName,
		workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](
			minRetryDelay, maxRetryDelay),
		c.isUnobserved)
	if err := c.addIndexers(foos, deployments); err != nil {
		return nil, fmt.Errorf("adding indexers: %w", err)
	}
	c.addHandlers = func() ([]cache.DoneChecker, error) { return c.addEventHandlers(foos, deployments) }
	return c, nil
}

// addIndexers adds the indexes by which syncHandler finds the Deployments of a Foo, and
// handleObject the Foos that name a Deployment, without a search through all objects.
func (c *Controller) addIndexers(
	foos informers.TypedFooInformer, deployments appsinformers.TypedDeploymentInformer,
) error {
	err := deployments.TypedInformer().AddTypedIndexers(appsinformers.DeploymentIndexers{
		controllerUIDIndex: func(deployment *appsv1.Deployment) ([]string, error) {
			if controller := metav1.GetControllerOfNoCopy(deployment); controller != nil {
				return []string{string(controller.UID)}, nil
			}
			return nil, nil
		},
	})
	if err != nil {
		return err
	}
	return foos.TypedInformer().AddTypedIndexers(informers.FooIndexers{
		deploymentNameIndex: func(foo *v1alpha1.Foo) ([]string, error) {
			return []string{cache.NewObjectName(foo.Namespace, foo.Spec.DeploymentName).String()}, nil
		},
	})
}

// addEventHandlers makes every event of a Foo or of one of its Deployments put a key on the queue. What
// it returns is done when the handlers have seen all objects in the caches.
func (c *Controller) addEventHandlers(
	foos informers.TypedFooInformer, deployments appsinformers.TypedDeploymentInformer,
) (synced []cache.DoneChecker, err error) {
	fooHandler, err := foos.TypedInformer().AddTypedEventHandler(informers.FooHandlerFuncs{
		AddFunc: func(foo *v1alpha1.Foo) {
			c.enqueueFoo(cache.MetaObjectToName(foo), foo, "Foo added")
		},
		UpdateFunc: func(_, foo *v1alpha1.Foo) {
			c.enqueueFoo(cache.MetaObjectToName(foo), foo, "Foo updated")
		},
		DeleteFunc: func(deleted informers.DeletedFoo) {
			// OptionalObj is nil if only the key is known.
			foo := cmp.Or(deleted.OptionalObj, &v1alpha1.Foo{})
			c.enqueueFoo(deleted.GetObjectName(), foo, "Foo deleted")
		},
	})
	if err != nil {
		return nil, err
	}
	deploymentHandler, err := deployments.TypedInformer().AddTypedEventHandler(
		appsinformers.DeploymentHandlerFuncs{
			AddFunc:    func(d *appsv1.Deployment) { c.handleObject(d, "Deployment added") },
			UpdateFunc: func(_, d *appsv1.Deployment) { c.handleObject(d, "Deployment updated") },
			DeleteFunc: func(deleted appsinformers.DeletedDeployment) {
				// If the watch missed the deletion, this may be an older state: the owner may have
				// changed since then, but not the name.
				if deleted.OptionalObj != nil {
					c.handleObject(deleted.OptionalObj, "Deployment deleted")
				}
			},
		})
	if err != nil {
		return nil, err
	}
	return []cache.DoneChecker{fooHandler.HasSyncedChecker(), deploymentHandler.HasSyncedChecker()}, nil
}

// enqueueFoo puts the key of a Foo on the queue, because of an event of object. Event handlers have
// no context, so enqueueFoo logs with the program's own logger.
func (c *Controller) enqueueFoo(key cache.ObjectName, object metav1.Object, because string) {
	klog.Background().V(5).Info("Queueing Foo", "foo", key, "because", because,
		"object", cache.MetaObjectToName(object), "resourceVersion", object.GetResourceVersion())
	c.queue.Add(key)
}

// isUnobserved reports whether the Foo of key is new or changed. Somebody waits for such a Foo, so it
// goes before those that are only looked at again: after a restart, or because of an obstacle.
func (c *Controller) isUnobserved(key cache.ObjectName) bool {
	foo, err := c.foos.Foos(key.Namespace).Get(key.Name)
	return err == nil && foo.Status.ObservedGeneration != foo.Generation
}

// handleObject enqueues the Foo that controls object, a Deployment, and the Foos that name it: they
// may wait for the name to become free, or may have lost the Deployment.
func (c *Controller) handleObject(object metav1.Object, because string) {
	owner := metav1.GetControllerOfNoCopy(object)
	if owner != nil && isFoo(owner) {
		c.enqueueFoo(cache.NewObjectName(object.GetNamespace(), owner.Name), object, because)
	}
	name := cache.MetaObjectToName(object).String()
	foos, err := c.foosByDeployment.ByTypedIndex(deploymentNameIndex, name)
	if err != nil {
		utilruntime.HandleError(fmt.Errorf("finding the Foos of Deployment %s: %w", name, err))
	}
	for _, foo := range foos { // not by UID: others may have changed the name in the reference
		if owner == nil || !isFoo(owner) || foo.Name != owner.Name {
			c.enqueueFoo(cache.MetaObjectToName(foo), object, because)
		}
	}
}

// isFoo reports whether owner refers to a Foo, of any version.
func isFoo(owner *metav1.OwnerReference) bool {
	gv, err := schema.ParseGroupVersion(owner.APIVersion)
	return err == nil && gv.Group == fooKind.Group && owner.Kind == fooKind.Kind
}

// Run syncs the keys of the queue with the given number of workers until ctx is done. It returns
// when every sync that has begun is finished, and drops the keys that are still queued. It may be
// called only once.
func (c *Controller) Run(ctx context.Context, workers int) {
	defer utilruntime.HandleCrashWithContext(ctx)
	logger := klog.FromContext(ctx)

	var wg sync.WaitGroup
	defer func() {
		c.queue.ShutDown()
		wg.Wait()
		logger.Info("Stopped the workers")
	}()
	synced, err := c.addHandlers()
	if err != nil {
		utilruntime.HandleErrorWithContext(ctx, err, "Adding event handlers failed") // the informers have ended
		return
	}
	if !cache.WaitFor(ctx, "", synced...) {
		return
	}
	logger.Info("Starting the workers", "count", workers)
	for range workers {
		wg.Go(func() { wait.UntilWithContext(ctx, c.runWorker, time.Second) })
	}
	<-ctx.Done()
}

// runWorker processes keys until ctx is done.
func (c *Controller) runWorker(ctx context.Context) {
	for ctx.Err() == nil && c.processNextWorkItem(ctx) {
	}
}

// processNextWorkItem waits for a key and syncs it. No other function reports the errors of a sync.
// It returns false when the queue is shut down.
//
// Tools follow a Foo by these lines of the log, those of Run, and those that begin with "Queueing Foo".
// So these messages are an interface: change none of them.
func (c *Controller) processNextWorkItem(ctx context.Context) bool {
	key, shutdown := c.queue.Get()
	if shutdown {
		return false
	}
	defer c.queue.Done(key)

	logger := klog.LoggerWithValues(klog.FromContext(ctx), "foo", key)
	start := time.Now()
	logger.V(4).Info("Started syncing Foo")
	defer func() { logger.V(4).Info("Finished syncing Foo", "duration", time.Since(start)) }()
	// Not canceled with ctx: a sync that has begun is finished, even if the process is to stop.
	syncCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), syncTimeout)
	defer cancel()
	err := c.syncHandler(klog.NewContext(syncCtx, logger), key)
	syncErrors.Count(err)
	switch {
	case err == nil:
		c.queue.Forget(key)
	case apierrors.IsConflict(err) && !patch.IsRefusal(err):
		// Somebody else wrote in between. That is normal: a sync succeeds when the cache shows it.
		logger.V(4).Info("Retrying after a conflict", "err", err)
		c.queue.AddRateLimited(key)
	default:
		utilruntime.HandleErrorWithContext(ctx, err, "Syncing failed, will retry",
			"foo", key, "retries", c.queue.NumRequeues(key))
		c.queue.AddRateLimited(key)
	}
	return true
}

// syncHandler syncs the Foo of key, and writes its status if there is something new to report. A
// nil error means that there is nothing to do until the key comes back.
func (c *Controller) syncHandler(ctx context.Context, key cache.ObjectName) error {
	if !c.fooWrites.Seen(key) || !c.deploymentWrites.Seen(key) {
		c.enqueueFooAfter(ctx, key, staleRetryDelay, "the cache does not show the last write yet")
		return nil
	}
	foo, err := c.foos.Foos(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		c.fooWrites.Clear(key)
		c.deploymentWrites.Clear(key)
		c.repairs.Clear(key)
		return nil // the garbage collector deletes the Deployments that the Foo owned
	}
	if err != nil {
		return err
	}
	status, err := c.syncDeployment(ctx, foo)
	if status == nil {
		return err
	}
	return cmp.Or(err, c.updateStatus(ctx, foo, *status))
}
