package main

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	informers "example.com/sample-controller/pkg/generated/informers/externalversions/samplecontroller/v1alpha1"
	listers "example.com/sample-controller/pkg/generated/listers/samplecontroller/v1alpha1"
)

const (
	// After an error, a key is retried after 5ms, 10ms, 20ms, 40ms, 80ms, 160ms, 320ms, 640ms,
	// 1.28s, 2.56s, 5.12s, 10.24s, 20.48s, 30s, 30s, ... until a sync succeeds.
	minRetryDelay = 5 * time.Millisecond
	maxRetryDelay = 30 * time.Second
	// syncTimeout limits one sync, and so the time that a shutdown waits for the last syncs.
	syncTimeout = 10 * time.Second
)

// Controller creates a Deployment for each Foo.
type Controller struct {
	kubeClient kubernetes.Interface

	foos           listers.FooLister
	handlersSynced []cache.DoneChecker

	// queue holds keys, not objects: a Foo waits there only once, however many events it gets, and
	// the sync reads the newest state. The queue never hands one key to two workers at a time.
	queue workqueue.TypedRateLimitingInterface[cache.ObjectName]
}

// NewController returns a Controller that reads from the informer and writes through the client.
// The informer must not be started yet.
func NewController(
	kubeClient kubernetes.Interface, foos informers.TypedFooInformer,
) (*Controller, error) {
	c := &Controller{
		kubeClient: kubeClient,
		foos:       foos.Lister(),
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](
				minRetryDelay, maxRetryDelay),
			workqueue.TypedRateLimitingQueueConfig[cache.ObjectName]{Name: controllerName},
		),
	}
	if err := c.addEventHandlers(foos); err != nil {
		return nil, fmt.Errorf("adding event handlers: %w", err)
	}
	return c, nil
}

// addEventHandlers makes every event of a Foo put its key on the queue.
func (c *Controller) addEventHandlers(foos informers.TypedFooInformer) error {
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
		return err
	}
	c.handlersSynced = []cache.DoneChecker{fooHandler.HasSyncedChecker()}
	return nil
}

// enqueueFoo puts the key of a Foo on the queue, because of an event of object. Event handlers have
// no context, so enqueueFoo logs with the program's own logger.
func (c *Controller) enqueueFoo(key cache.ObjectName, object metav1.Object, because string) {
	klog.Background().V(5).Info("Queueing Foo", "foo", key, "because", because,
		"object", cache.MetaObjectToName(object), "resourceVersion", object.GetResourceVersion())
	c.queue.Add(key)
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
	if !cache.WaitFor(ctx, "", c.handlersSynced...) {
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

	logger := klog.LoggerWithValues(klog.FromContext(ctx), "foo", key)
	start := time.Now()
	logger.V(4).Info("Started syncing Foo")
	defer func() { logger.V(4).Info("Finished syncing Foo", "duration", time.Since(start)) }()
	// Not canceled with ctx: a sync that has begun is finished, even if the process is to stop.
	syncCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), syncTimeout)
	defer cancel()
	err := c.syncHandler(klog.NewContext(syncCtx, logger), key)
	switch {
	case err == nil:
		c.queue.Forget(key)
	case apierrors.IsConflict(err):
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

// syncHandler makes sure that the Foo of key has a Deployment. A nil error means that there is
// nothing to do until the key comes back.
func (c *Controller) syncHandler(ctx context.Context, key cache.ObjectName) error {
	foo, err := c.foos.Foos(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return c.createDeployment(ctx, foo)
}
