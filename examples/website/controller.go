package main

import (
	"cmp"
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"example.com/sample-controller/examples/website/meaning"
	"example.com/sample-controller/examples/website/outside"
	"example.com/sample-controller/examples/website/pkg/apis/website/v1alpha1"
	clientset "example.com/sample-controller/examples/website/pkg/generated/clientset/versioned"
	informers "example.com/sample-controller/examples/website/pkg/generated/informers/externalversions/website/v1alpha1"
	listers "example.com/sample-controller/examples/website/pkg/generated/listers/website/v1alpha1"
	"example.com/sample-controller/internal/consistency"
	"example.com/sample-controller/internal/fairqueue"
	"example.com/sample-controller/internal/patch"
)

const (
	// controllerName is this controller's name wherever it needs one: in the queue's metrics, in
	// Events, as field manager, as value of the managed-by label, and as name of its Lease, if any.
	controllerName = meaning.ControllerName

	// After an error, a key is retried after 5ms, 10ms, 20ms, 40ms, 80ms, 160ms, 320ms, 640ms,
	// 1.28s, 2.56s, 5.12s, 10.24s, 20.48s, 30s, 30s, ... until a sync succeeds.
	minRetryDelay = 5 * time.Millisecond
	maxRetryDelay = 30 * time.Second
	// staleRetryDelay is how long a key waits if the cache may not show the last write yet.
	staleRetryDelay = time.Second
	// syncTimeout limits one sync, and so the time that a shutdown waits for the last syncs.
	syncTimeout = 10 * time.Second
)

var websiteKind = schema.GroupVersionKind{
	Group: v1alpha1.GroupName, Version: v1alpha1.GroupVersion.Version, Kind: "Website",
}

// Controller makes the children of Websites match their specs, tells the registry of the Websites,
// and writes their statuses.
type Controller struct {
	websiteClient clientset.Interface
	registry      *outside.Client
	resync        time.Duration
	recorder      events.EventRecorder

	websites      listers.WebsiteLister
	websiteWrites *consistency.Writes
	children      children
	addHandlers   func() ([]cache.DoneChecker, error) // called by Run: a standby's queue stays empty
	// due is when each Website is registered again, even if nothing has changed. Its keys are of type
	// cache.ObjectName, its values of type time.Time.
	due sync.Map
	// forgotten has the keys of the Websites that this process has deregistered since their last PUT. The
	// status cannot say that: a process may end before it writes what it has done.
	forgotten  sync.Map
	finalizers *patch.Repairs // which of their writes the API server has refused

	// queue holds keys, not objects: a Website waits there only once, however many events it gets,
	// and the sync reads the newest state. The queue never hands one key to two workers at a time.
	queue workqueue.TypedRateLimitingInterface[cache.ObjectName]
}

// NewController returns a Controller that registers each Website again after resync. The informers
// must not be started yet; those of the children are from factory.
func NewController(
	kubeClient kubernetes.Interface,
	websiteClient clientset.Interface,
	registry *outside.Client,
	resync time.Duration,
	websites informers.TypedWebsiteInformer,
	factory kubeinformers.SharedInformerFactory,
	recorder events.EventRecorder,
) (*Controller, error) {
	c := &Controller{
		websiteClient: websiteClient,
		registry:      registry,
		resync:        resync,
		recorder:      recorder,
		websites:      websites.Lister(),
		websiteWrites: consistency.NewWrites(websites.Informer().GetStore()),
		finalizers:    patch.NewRepairs(),
	}
	c.queue = fairqueue.New(controllerName,
		workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](
			minRetryDelay, maxRetryDelay),
		c.isUnobserved)
	if err := c.addChildren(kubeClient, websites, factory); err != nil {
		return nil, err
	}
	c.addHandlers = func() ([]cache.DoneChecker, error) { return c.addEventHandlers(websites) }
	return c, nil
}

// addEventHandlers makes every event of a Website put its key on the queue. The children have
// handlers of their own, handleObject in the package owned.
func (c *Controller) addEventHandlers(
	websites informers.TypedWebsiteInformer,
) ([]cache.DoneChecker, error) {
	handler, err := websites.TypedInformer().AddTypedEventHandler(informers.WebsiteHandlerFuncs{
		AddFunc: func(website *v1alpha1.Website) {
			c.enqueueWebsite(cache.MetaObjectToName(website), website, "Website added")
		},
		UpdateFunc: func(_, website *v1alpha1.Website) {
			c.enqueueWebsite(cache.MetaObjectToName(website), website, "Website updated")
		},
		DeleteFunc: func(deleted informers.DeletedWebsite) {
			// OptionalObj is nil if only the key is known.
			website := cmp.Or(deleted.OptionalObj, &v1alpha1.Website{})
			c.enqueueWebsite(deleted.GetObjectName(), website, "Website deleted")
		},
	})
	if err != nil {
		return nil, err
	}
	synced, err := c.children.AddEventHandlers()
	return append(synced, handler.HasSyncedChecker()), err
}

// enqueueWebsite puts the key of a Website on the queue, because of an event of object. Event
// handlers have no context, so it logs that with the program's own logger.
func (c *Controller) enqueueWebsite(key cache.ObjectName, object metav1.Object, because string) {
	klog.Background().V(5).Info("Queueing Website", "website", key, "because", because,
		"object", cache.MetaObjectToName(object), "resourceVersion", object.GetResourceVersion())
	c.queue.Add(key)
}

// isUnobserved reports whether the Website of key is new or changed: then it goes before the others.
func (c *Controller) isUnobserved(key cache.ObjectName) bool {
	website, err := c.websites.Websites(key.Namespace).Get(key.Name)
	return err == nil && website.Status.ObservedGeneration != website.Generation
}

// enqueueWebsiteAfter puts the key of a Website on the queue later: there may be no event that does
// it.
func (c *Controller) enqueueWebsiteAfter(
	ctx context.Context, key cache.ObjectName, delay time.Duration, because string,
) {
	klog.FromContext(ctx).V(5).Info("Queueing Website again", "after", delay, "because", because)
	c.queue.AddAfter(key, delay)
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
func (c *Controller) processNextWorkItem(ctx context.Context) bool {
	key, shutdown := c.queue.Get()
	if shutdown {
		return false
	}
	defer c.queue.Done(key)

	logger := klog.LoggerWithValues(klog.FromContext(ctx), "website", key)
	start := time.Now()
	logger.V(4).Info("Started syncing Website")
	defer func() { logger.V(4).Info("Finished syncing Website", "duration", time.Since(start)) }()
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
			"website", key, "retries", c.queue.NumRequeues(key))
		c.queue.AddRateLimited(key)
	}
	return true
}

// syncHandler takes one step from the state in the caches towards what the Website of key asks for.
// A nil error means that there is nothing to do until the key comes back.
func (c *Controller) syncHandler(ctx context.Context, key cache.ObjectName) error {
	if !c.websiteWrites.Seen(key) || !c.children.Seen(key) {
		c.enqueueWebsiteAfter(ctx, key, staleRetryDelay, "the cache does not show the last write yet")
		return nil
	}
	website, err := c.websites.Websites(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		c.websiteWrites.Clear(key)
		c.children.Forget(key)
		c.due.Delete(key)
		c.forgotten.Delete(key)
		c.finalizers.Clear(key)
		return nil // the garbage collector deletes the children
	}
	if err != nil {
		return err
	}
	if website.DeletionTimestamp != nil {
		return c.finalize(ctx, website)
	}
	return c.syncWebsite(ctx, website)
}

// syncWebsite takes a step for a Website that is not being deleted.
func (c *Controller) syncWebsite(ctx context.Context, website *v1alpha1.Website) error {
	website, registryErr := c.ensureFinalizer(ctx, website)
	if patch.IsGone(registryErr) {
		return nil // deleted; the event of that is on the way
	}
	if registryErr != nil && !patch.IsRefusal(registryErr) {
		return registryErr
	}
	ready, err := c.children.Sync(ctx, website)
	if err != nil || ready == nil {
		return err // nil after a write: its event brings the key back
	}
	status := c.observedStatus(website, *ready)
	if registryErr == nil {
		registryErr = c.register(ctx, website, &status)
	} else if done, err := c.deregister(ctx, website, &status); done { // or its entry would stay for ever
		meaning.SetCondition(website, &status, finalizerRejected)
	} else {
		registryErr = cmp.Or(err, registryErr)
	}
	if apierrors.IsConflict(registryErr) && !patch.IsRefusal(registryErr) {
		return registryErr
	}
	if err := c.updateStatus(ctx, website, status); err != nil {
		return err
	}
	return registryErr
}
