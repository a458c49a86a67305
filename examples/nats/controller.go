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

	// fooBucket holds the Foos, under NAMESPACE.NAME; a namespace contains no dot. The statuses
	// are in a bucket of their own, under the same keys. So a status write makes no new revision
	// and no event of a Foo, and can be forbidden to users who may put Foos.
	fooBucket    = "foos"
	statusBucket = "foo-status"
	// defaultsName is the ConfigMap with the default number of replicas for the Foos in its
	// namespace.
	defaultsName = "foo-defaults"
	defaultsKey  = "replicas"
	// ownerAnnotation names the Foo of a Deployment, as STORE/KEY. FooUIDLabel, the label by which
	// a Foo finds and owns its Deployments, has to be short: the key cannot be read from it.
	ownerAnnotation = v1alpha1.GroupName + "/owner"

	reasonInvalid = "FooInvalid"

	minRetryDelay = 5 * time.Millisecond
	maxRetryDelay = 30 * time.Second
	// blockedRetryDelay is for obstacles that may go away without an event.
	blockedRetryDelay = 15 * time.Second
	syncTimeout       = 10 * time.Second

	ownerIndex  = "owner"  // of Deployments
	recordIndex = "record" // of Foos
)

// Controller makes Deployments match the specs of their Foos, and writes the Foos' statuses.
// Foos are the primary resource, in NATS. Deployments are secondary, written in Kubernetes.
// ConfigMaps are tertiary, only read.
type Controller struct {
	kubeClient kubernetes.Interface
	recorder   events.EventRecorder

	foos, statuses     *mirror
	deployments        appslisters.DeploymentLister
	deploymentsByOwner cache.Indexer
	configMaps         corelisters.ConfigMapLister
	synced             []cache.DoneChecker

	// queue holds keys of the bucket, and never hands one to two workers at a time.
	queue workqueue.TypedRateLimitingInterface[string]
}

// NewController returns a Controller that reads from the two buckets and from the two informers.
// The informers must not be started yet.
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

// enqueueAll enqueues all Foos, and the Foos that are gone but have left something behind.
func (c *Controller) enqueueAll() {
	for _, key := range slices.Concat(c.foos.records.ListKeys(), c.statuses.records.ListKeys()) {
		c.queue.Add(key)
	}
	c.garbageSecondaries()
}

// garbageSecondaries enqueues the Foos that own a Deployment but are not in the bucket. They may
// have been deleted while this program did not run, and no garbage collector knows of Foos. Events
// enqueue most of them, too, but this needs no event. Their syncs delete the Deployments.
func (c *Controller) garbageSecondaries() {
	for _, object := range c.deploymentsByOwner.List() {
		key, ours := c.ownerKey(object.(metav1.Object))
		if ours && c.foos.get(key) == nil {
			c.queue.Add(key)
		}
	}
}

// Relist has both buckets listed again, so that every Foo is synced and the garbage is collected.
// It is called after the connection was interrupted, and from time to time. The resync of an
// informer reads its cache, but Relist reads the store.
func (c *Controller) Relist() {
	c.foos.listAnew()
	c.statuses.listAnew()
}

// Run syncs the keys of the queue with the given number of workers until ctx is done. If it cannot
// go on, it calls fail. It returns when every sync that has begun is finished.
func (c *Controller) Run(
	ctx context.Context, fail context.CancelCauseFunc, workers int, resync time.Duration,
) {
	var wg sync.WaitGroup
	defer wg.Wait()
	defer c.queue.ShutDown()
	wg.Go(func() { c.foos.run(ctx, fail) })
	wg.Go(func() { c.statuses.run(ctx, fail) })
	// If a Foo were missing in the copy, its Deployment would look like garbage.
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

// processNextWorkItem gets a key, syncs it if it is valid, and is done with it: it forgets the key,
// or adds it with a delay after an error. It returns false when ctx is done.
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
	// Not canceled with ctx: a sync that has begun is finished, even if the process is to stop.
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

// validKey reports whether key is NAMESPACE.NAME. A bucket may contain any other keys.
func validKey(key string) bool {
	namespace, name, _ := strings.Cut(key, ".")
	return len(validation.IsDNS1123Label(namespace)) == 0 &&
		len(validation.IsDNS1123Subdomain(name)) == 0
}

// isConflict reports whether the API server or the NATS server refused a write because somebody
// else wrote in between.
func isConflict(err error) bool {
	return apierrors.IsConflict(err) || errors.Is(err, jetstream.ErrKeyRevisionMismatch) ||
		errors.Is(err, jetstream.ErrKeyExists)
}

// syncHandler takes one step from the state in the caches towards what the Foo of key asks for. A
// nil error means that there is nothing to do until the key comes back.
func (c *Controller) syncHandler(ctx context.Context, key string) error {
	foo, err := c.foo(key)
	if foo == nil {
		return c.finalize(ctx, key)
	}
	if err != nil { // only a change of the Foo or the defaults can help
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
			return c.updateDeployment(ctx, foo, observed, desired)
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
