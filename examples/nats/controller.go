package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	appslisters "k8s.io/client-go/listers/apps/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/nats-io/nats.go/jetstream"

	"example.com/sample-controller/examples/internal/meaning"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

const (
	controllerName = "nats-sample-controller"

	// fooBucket holds the Foos, under NAMESPACE.NAME; a namespace has no dot in it. The statuses
	// are in a bucket of their own under the same keys: a status write is no new revision of a
	// Foo, makes no event of one, and may be forbidden to those who put Foos.
	fooBucket    = "foos"
	statusBucket = "foo-status"
	// defaultsName is the ConfigMap that says how many replicas a Foo of its namespace has that
	// does not say so itself.
	defaultsName = "foo-defaults"
	defaultsKey  = "replicas"
	// ownerAnnotation names the Foo of a Deployment, as STORE/KEY. The label fooUIDLabel, by which
	// it is found and owned, has to be short, and cannot be read back.
	ownerAnnotation = v1alpha1.GroupName + "/owner"

	reasonInvalid = "FooInvalid"

	minRetryDelay = 5 * time.Millisecond
	maxRetryDelay = 30 * time.Second
	// blockedRetryDelay is for what cannot be mended here and may not be seen either.
	blockedRetryDelay = 15 * time.Second
	syncTimeout       = 10 * time.Second

	ownerIndex  = "owner"  // of Deployments
	recordIndex = "record" // of Foos
)

// Controller makes the Deployments of all Foos match their specs, and reports in their statuses.
// The Foos are the primary resource, in NATS; Deployments are secondary, written in Kubernetes;
// ConfigMaps are tertiary, only read.
type Controller struct {
	kubeClient kubernetes.Interface
	recorder   events.EventRecorder

	foos, statuses     *mirror
	deployments        appslisters.DeploymentLister
	deploymentsByOwner cache.Indexer
	configMaps         corelisters.ConfigMapLister
	synced             []cache.DoneChecker

	// queue holds keys of the bucket, and never hands one to two workers.
	queue workqueue.TypedRateLimitingInterface[string]
}

// NewController returns a Controller that reads from the two buckets and from the two informers,
// which must not be started yet.
func NewController(
	kubeClient kubernetes.Interface, foos, statuses *mirror,
	deployments appsinformers.DeploymentInformer, configMaps coreinformers.ConfigMapInformer,
	recorder events.EventRecorder,
) (*Controller, error) {
	c := &Controller{
		kubeClient: kubeClient, recorder: recorder, foos: foos, statuses: statuses,
		deployments:        deployments.Lister(),
		deploymentsByOwner: deployments.Informer().GetIndexer(),
		configMaps:         configMaps.Lister(),
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](minRetryDelay, maxRetryDelay)),
	}
	foos.changed = c.queue.Add
	foos.listed, statuses.listed = c.enqueueAll, c.enqueueAll
	err := deployments.Informer().AddIndexers(cache.Indexers{
		ownerIndex: func(object any) ([]string, error) {
			return []string{object.(metav1.Object).GetLabels()[meaning.FooUIDLabel]}, nil
		},
	})
	if err != nil {
		return nil, fmt.Errorf("adding an index: %w", err)
	}
	secondary, err := deployments.Informer().AddEventHandler(onEvent(c.handleSecondary))
	if err != nil {
		return nil, fmt.Errorf("adding the handler of Deployments: %w", err)
	}
	tertiary, err := configMaps.Informer().AddEventHandler(onEvent(c.handleTertiary))
	if err != nil {
		return nil, fmt.Errorf("adding the handler of ConfigMaps: %w", err)
	}
	c.synced = []cache.DoneChecker{
		foos, statuses, secondary.HasSyncedChecker(), tertiary.HasSyncedChecker(),
	}
	return c, nil
}

// onEvent returns an event handler that calls handle with the newest known state of an object.
func onEvent(handle func(metav1.Object)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { handle(object.(metav1.Object)) },
		UpdateFunc: func(_, object any) { handle(object.(metav1.Object)) },
		DeleteFunc: func(object any) {
			if missed, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = missed.Obj
			}
			handle(object.(metav1.Object))
		},
	}
}

// handleSecondary enqueues the Foo that owns deployment, and the Foos that name it.
func (c *Controller) handleSecondary(deployment metav1.Object) {
	if key, ours := c.ownerKey(deployment); ours {
		c.queue.Add(key)
	}
	for _, key := range c.foos.find(keyOf(deployment.GetNamespace(), deployment.GetName())) {
		c.queue.Add(key)
	}
}

// handleTertiary enqueues the Foos in the namespace of a ConfigMap with defaults.
func (c *Controller) handleTertiary(configMap metav1.Object) {
	for _, key := range c.foos.find(configMap.GetNamespace()) {
		c.queue.Add(key)
	}
}

// enqueueAll enqueues all Foos, and what is left of those that are gone.
func (c *Controller) enqueueAll() {
	for _, key := range slices.Concat(c.foos.records.ListKeys(), c.statuses.records.ListKeys()) {
		c.queue.Add(key)
	}
	c.garbageSecondaries()
}

// garbageSecondaries enqueues the owners of Deployments that are not in the bucket: one may have
// been deleted while this program did not run, and no garbage collector knows of Foos. Events bring
// most of them, too; this needs none. The sync of a Foo that is gone deletes its Deployments.
func (c *Controller) garbageSecondaries() {
	for _, object := range c.deploymentsByOwner.List() {
		key, ours := c.ownerKey(object.(metav1.Object))
		if ours && c.foos.get(key) == nil {
			c.queue.Add(key)
		}
	}
}

// Relist makes both buckets be listed anew, and with that every Foo be synced and the garbage be
// collected. It is called when the connection was interrupted, and from time to time: a resync
// of informers re-reads a cache, this one the store.
func (c *Controller) Relist() {
	c.foos.listAnew()
	c.statuses.listAnew()
}

// Run syncs the keys of the queue with that many workers until ctx is done, and calls fail if it
// cannot go on. It returns when the last sync that had begun is finished.
func (c *Controller) Run(
	ctx context.Context, fail context.CancelCauseFunc, workers int, resync time.Duration,
) {
	var wg sync.WaitGroup
	defer wg.Wait()
	defer c.queue.ShutDown()
	wg.Go(func() { c.foos.run(ctx, fail) })
	wg.Go(func() { c.statuses.run(ctx, fail) })
	// Without a Foo in the copy, its Deployment would look like garbage.
	if !cache.WaitFor(ctx, "", c.synced...) {
		return
	}
	c.enqueueAll()
	klog.FromContext(ctx).Info("Starting the workers", "count", workers)
	for range workers {
		wg.Go(func() {
			for c.processNextWorkItem(ctx) {
			}
		})
	}
	for ticks := time.Tick(resync); ; {
		select {
		case <-ticks:
			c.Relist()
		case <-ctx.Done():
			return
		}
	}
}

// processNextWorkItem waits for a key and syncs it: get; valid? sync; forget, or add with a delay;
// done. It returns false when ctx is done.
func (c *Controller) processNextWorkItem(ctx context.Context) bool {
	key, shutdown := c.queue.Get()
	if shutdown {
		return false
	}
	defer c.queue.Done(key)
	if ctx.Err() != nil {
		return false
	}
	if !validKey(key) {
		klog.FromContext(ctx).Info("Ignoring a key that is not NAMESPACE.NAME", "key", key)
		c.queue.Forget(key)
		return true
	}
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "foo", key)
	// Not canceled with ctx: what has begun is finished, also when the process is asked to stop.
	syncCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), syncTimeout)
	defer cancel()
	err := c.syncHandler(klog.NewContext(syncCtx, logger), key)
	switch {
	case err == nil:
		c.queue.Forget(key)
	case isConflict(err):
		logger.V(4).Info("Retrying after a conflict", "err", err)
		c.queue.AddRateLimited(key)
	default:
		utilruntime.HandleErrorWithContext(ctx, err, "Syncing failed, will retry",
			"foo", key, "retries", c.queue.NumRequeues(key))
		c.queue.AddRateLimited(key)
	}
	return true
}

// validKey reports whether key is NAMESPACE.NAME. A bucket has keys of any kind.
func validKey(key string) bool {
	namespace, name, _ := strings.Cut(key, ".")
	return len(validation.IsDNS1123Label(namespace)) == 0 &&
		len(validation.IsDNS1123Subdomain(name)) == 0
}

// isConflict reports whether the API server or the NATS server refused a write because somebody
// else wrote since what it was based on was read.
func isConflict(err error) bool {
	return apierrors.IsConflict(err) || errors.Is(err, jetstream.ErrKeyRevisionMismatch) ||
		errors.Is(err, jetstream.ErrKeyExists)
}

// syncHandler takes one step from what the caches show towards what the Foo of that key asks for.
// It returns nil when there is nothing to do until the next change.
func (c *Controller) syncHandler(ctx context.Context, key string) error {
	foo, err := c.foo(key)
	if foo == nil {
		return c.finalize(ctx, key)
	}
	if err != nil { // nothing but a change mends that
		ready := meaning.NotReady(reasonInvalid, err.Error())
		return c.writeStatus(ctx, foo, meaning.DesiredStatus(foo, nil, ready))
	}
	observed, err := c.deployments.Deployments(foo.Namespace).Get(foo.Spec.DeploymentName)
	if apierrors.IsNotFound(err) {
		observed, err = c.createDeployment(ctx, foo)
	}
	if err != nil || observed == nil {
		return err
	}
	if !isOwnedBy(observed, foo) {
		return c.reportNameTaken(ctx, foo, observed)
	}
	if observed.DeletionTimestamp == nil {
		desired := c.desiredDeployment(observed, foo)
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
	return c.writeStatus(ctx, foo, status)
}
