package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	kubeinformers "k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"example.com/sample-controller/examples/internal/meaning"
	"example.com/sample-controller/examples/internal/owned"
	"example.com/sample-controller/internal/consistency"
	"example.com/sample-controller/internal/fairqueue"
	"example.com/sample-controller/internal/informers"
	"example.com/sample-controller/internal/metrics"
	"example.com/sample-controller/internal/patch"
	"example.com/sample-controller/internal/process"
	"example.com/sample-controller/internal/recorder"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
	fooscheme "example.com/sample-controller/pkg/generated/clientset/versioned/scheme"
	fooinformers "example.com/sample-controller/pkg/generated/informers/externalversions"
	listers "example.com/sample-controller/pkg/generated/listers/samplecontroller/v1alpha1"
)

// The times are those of the root.
const (
	minRetryDelay   = 5 * time.Millisecond
	maxRetryDelay   = 30 * time.Second
	staleRetryDelay = time.Second
	syncTimeout     = 10 * time.Second
)

// syncErrors counts the syncs that have failed.
var syncErrors = metrics.NewSyncErrors("nats_foo_controller", "Foo")

// Controller makes Deployments, the secondary resource, match the specs of Foos, the primary one.
// Defaults are the tertiary ones, in NATS and in Kubernetes: it only reads them.
type Controller struct {
	process.Process
	server
	options      *options
	queue        workqueue.TypedRateLimitingInterface[cache.ObjectName]
	foos, values *source
	fooLister    listers.FooLister // of foos
	defaults     listers.FooLister // of values
	configMaps   corelisters.ConfigMapLister
	fooWrites    *consistency.Writes
	children     *owned.Objects[*v1alpha1.Foo, *appsv1.Deployment]
	told         sync.Map // by key: when people were told that the Foo is missing
	deployments  cache.TypedSharedIndexInformer[*appsv1.Deployment]
	addHandlers  []func() (cache.DoneChecker, error)
}

// server is the part of a NATS server that the controller uses.
type server interface {
	Bucket(ctx context.Context, name string) (bucket, error)
	Check(*http.Request) error
}

// NewController returns a Controller of the Foos on a server. It makes no request.
func NewController(
	ctx context.Context, config *rest.Config, o *options, s server,
) (*Controller, error) {
	clients, err := process.NewClients(config, &o.Options)
	if err != nil {
		return nil, err
	}
	buckets := source{keys: "*." + cmp.Or(o.Namespace, "*") + ".>", resync: o.resync}
	c := &Controller{server: s, options: o, foos: new(buckets), values: new(buckets)}
	c.Process = process.Process{
		Options: &o.Options, Clients: clients, Informers: &informers.Group{SyncTimeout: o.CacheSyncTimeout},
		Served:  appsv1.SchemeGroupVersion.WithResource("deployments"),
		Connect: c.connect, Ready: c.ready, Work: c.work,
	}
	c.queue = fairqueue.New(controllerName,
		workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](
			minRetryDelay, maxRetryDelay), c.isUnobserved)
	foos, values := c.foos.informer(), c.values.informer()
	c.fooLister = listers.NewFooLister(foos.GetIndexer())
	c.defaults = listers.NewFooLister(values.GetIndexer())
	c.fooWrites = consistency.NewWrites(foos.GetStore())
	configMaps := coreinformers.NewFilteredConfigMapInformer(clients.Kube, o.Namespace, o.resync,
		cache.Indexers{}, func(list *metav1.ListOptions) {
			list.FieldSelector = "metadata.name=" + defaultConfigMap
		})
	c.configMaps = corelisters.NewConfigMapLister(configMaps.GetIndexer())
	c.Recorder, err = recorder.New(ctx, clients.Kube, controllerName, kubescheme.Scheme, fooscheme.Scheme)
	err = errors.Join(err, c.addChildren(cache.NewTypedSharedIndexInformer[*v1alpha1.Foo](foos)))
	c.watch(foos, c.queue.Add)
	c.watch(values, c.enqueueNamespace)
	c.watch(configMaps, c.enqueueNamespace)
	return c, err
}

// addChildren says what Foos own. The handleObject of package owned enqueues the owner of each
// Deployment, whether there is that Foo or not. So Deployments without a Foo are found: at the
// start, when the informer adds all Deployments, and at each resync, when it updates them.
func (c *Controller) addChildren(foos cache.TypedSharedIndexInformer[*v1alpha1.Foo]) (err error) {
	factory := kubeinformers.NewSharedInformerFactoryWithOptions(c.Clients.Kube, c.options.resync,
		kubeinformers.WithNamespace(c.options.Namespace), kubeinformers.WithTransform(transform),
		kubeinformers.WithTweakListOptions(func(list *metav1.ListOptions) {
			list.LabelSelector = meaning.ManagedByLabel + "=" + controllerName
		}))
	c.deployments = factory.Apps().V1().Deployments().TypedInformer()
	c.Informers.Factories = append(c.Informers.Factories, factory)
	c.Informers.Informers = append(c.Informers.Informers, c.deployments)
	c.children, err = owned.New(owned.Owners[*v1alpha1.Foo]{
		GroupVersionKind: meaning.FooKind, Manager: controllerName, Informer: foos, Recorder: c.Recorder,
		Get:     c.Get,
		IsNew:   func(foo *v1alpha1.Foo) bool { return foo.Status.ObservedGeneration == 0 },
		Enqueue: func(key cache.ObjectName, _ metav1.Object, _ string) { c.queue.Add(key) },
		EnqueueAfter: func(_ context.Context, key cache.ObjectName, delay time.Duration, _ string) {
			c.queue.AddAfter(key, delay)
		},
	}, owned.Kind[*v1alpha1.Foo, *appsv1.Deployment]{
		Name: "Deployment", Informer: c.deployments,
		Client: func(namespace string) owned.Client[*appsv1.Deployment] {
			return client{c.Clients.Kube.AppsV1().Deployments(namespace)}
		},
		NameOf:    func(foo *v1alpha1.Foo) string { return foo.Spec.DeploymentName },
		New:       meaning.NewDeployment,
		SetFields: setFields,
		Ready:     meaning.ReadyCondition,
	})
	if err == nil {
		c.addHandlers = append(c.addHandlers, c.children.AddEventHandler)
	}
	return err
}

// watch starts an informer with the others. While this process works, handle gets the key of each event.
func (c *Controller) watch(informer cache.SharedIndexInformer, handle func(cache.ObjectName)) {
	factory := fooinformers.NewSharedInformerFactory(nil, 0)
	factory.InformerFor(&v1alpha1.Foo{}, func(clientset.Interface, time.Duration,
	) cache.SharedIndexInformer {
		return informer
	})
	c.Informers.Factories = append(c.Informers.Factories, factory)
	c.Informers.Informers = append(c.Informers.Informers, informer)
	do := func(object any) {
		if key, err := cache.DeletionHandlingObjectToName(object); err == nil {
			handle(key)
		}
	}
	c.addHandlers = append(c.addHandlers, func() (cache.DoneChecker, error) {
		handler, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: do, UpdateFunc: func(_, object any) { do(object) }, DeleteFunc: do,
		})
		if err != nil {
			return nil, err
		}
		return handler.HasSyncedChecker(), nil
	})
}

// enqueueNamespace enqueues all Foos of the namespace of key.
func (c *Controller) enqueueNamespace(key cache.ObjectName) {
	foos, err := c.fooLister.Foos(key.Namespace).List(labels.Everything())
	utilruntime.Must(err) // a cache does not fail
	for _, foo := range foos {
		c.queue.Add(cache.MetaObjectToName(foo))
	}
}

// isUnobserved reports whether the Foo of key is new or changed: such a Foo goes first.
func (c *Controller) isUnobserved(key cache.ObjectName) bool {
	foo, err := c.fooLister.Foos(key.Namespace).Get(key.Name)
	return err == nil && foo.Status.ObservedGeneration != foo.Generation
}

// openBuckets opens the buckets. It does not make them: a bucket that is not there is not an empty one.
func (c *Controller) openBuckets(ctx context.Context) (err error) {
	if c.foos.bucket, err = c.Bucket(ctx, fooBucket); err == nil {
		c.values.bucket, err = c.Bucket(ctx, defaultBucket)
	}
	return err
}

// Get reads a Foo from the bucket: not its status, nor the default.
func (c *Controller) Get(ctx context.Context, namespace, name string) (*v1alpha1.Foo, error) {
	foo := newFoo(cache.NewObjectName(namespace, name))
	entry, err := c.foos.bucket.Get(ctx, keyOf("spec", foo))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, apierrors.NewNotFound(v1alpha1.Resource("foos"), name)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the Foo: %w", err)
	}
	foo.Generation = int64(entry.Revision())
	if cached, err := c.fooLister.Foos(namespace).Get(name); err == nil && foo.Generation < cached.Generation {
		return nil, errors.New("reading the Foo: the replica of the bucket that has answered is behind")
	}
	return foo, nil
}

// syncHandler syncs the Foo of key, and writes its status if there is something new to report.
func (c *Controller) syncHandler(ctx context.Context, key cache.ObjectName) error {
	foo, err := c.fooLister.Foos(key.Namespace).Get(key.Name)
	if err != nil { // a lister has no other error than NotFound
		foo = newFoo(key)
	}
	if isGone(foo) {
		return c.finalize(ctx, foo)
	}
	c.told.Delete(key)
	if foo.Spec.Replicas == nil {
		foo = foo.DeepCopy()
		foo.Spec.Replicas = c.defaultReplicas(key.Namespace)
	}
	ready, err := c.children.Sync(ctx, foo)
	if err != nil || ready == nil {
		return err // nil after a write: its event brings the key back
	}
	if ready.Status == metav1.ConditionTrue {
		err = c.deleteOthers(ctx, foo)
	}
	status := meaning.DesiredStatus(foo, c.children.Get(foo), *ready)
	if equality.Semantic.DeepEqual(foo.Status, status) {
		return err
	}
	return errors.Join(err, c.updateStatus(ctx, foo, &status))
}

// defaultReplicas returns what the default in NATS says or, if it says nothing, the ConfigMap.
func (c *Controller) defaultReplicas(namespace string) *int32 {
	value, err := c.defaults.Foos(namespace).Get(defaultName)
	if err == nil && value.Spec.Replicas != nil {
		return value.Spec.Replicas
	}
	if configMap, err := c.configMaps.ConfigMaps(namespace).Get(defaultConfigMap); err == nil {
		if replicas, err := strconv.ParseInt(configMap.Data["replicas"], 10, 32); err == nil {
			return new(int32(replicas))
		}
	}
	return nil
}

// updateStatus writes the status of foo. The bucket refuses that if another replica has written it
// since. The revision of a status that is not there is 0.
func (c *Controller) updateStatus(
	ctx context.Context, foo *v1alpha1.Foo, status *v1alpha1.FooStatus,
) error {
	value, _ := json.Marshal(map[string]any{"status": status}) // no error: it is plain data
	revision, _ := strconv.ParseUint(foo.Annotations[statusRevision], 10, 64)
	revision, err := c.foos.bucket.Update(ctx, keyOf("status", foo), value, revision)
	if errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
		return apierrors.NewConflict(v1alpha1.Resource("foos"), foo.Name, err)
	} else if err != nil {
		return fmt.Errorf("writing the status: %w", err)
	}
	c.fooWrites.WroteAt(cache.MetaObjectToName(foo), strconv.FormatUint(revision, 10))
	return nil
}

// finalize deletes the Deployments of a Foo that is not in the bucket, and its status last: if the
// process dies in between, the status is left to say that there is more to do.
//
// Without a delete marker, nobody has deleted the Foo: the bucket was emptied or replaced, or the
// marker was purged. Then the Deployments stay, unless --delete-missing is set.
func (c *Controller) finalize(ctx context.Context, foo *v1alpha1.Foo) error {
	left, err := c.owned(foo)
	if err != nil {
		return err
	}
	if len(left) > 0 && foo.DeletionTimestamp == nil && !c.options.deleteMissing {
		if at, told := c.told.Load(cache.MetaObjectToName(foo)); told &&
			time.Since(at.(time.Time)) < c.options.resync/2 {
			return nil // the Deployment has changed
		}
		c.told.Store(cache.MetaObjectToName(foo), time.Now())
		klog.FromContext(ctx).Error(nil, "Kept the Deployment of a Foo that is missing")
		c.Recorder.Eventf(foo, left[0], corev1.EventTypeWarning, "FooMissing", "KeepDeployment",
			"The bucket has neither the Foo nor a delete marker: kept Deployment %q", left[0].Name)
		return nil
	}
	if len(left) == 0 && foo.Status.ObservedGeneration == 0 {
		c.forget(foo)
		return nil // a marker, of which the informer tells at each resync
	}
	if _, err := c.Get(ctx, foo.Namespace, foo.Name); !apierrors.IsNotFound(err) {
		return err // nil if the Foo is there again: the event of that is on the way
	}
	if err := c.deleteDeployments(ctx, foo, left); err != nil {
		return err
	}
	c.forget(foo)
	if foo.Status.ObservedGeneration == 0 {
		return nil
	}
	return c.foos.bucket.Delete(ctx, keyOf("status", foo))
}

func (c *Controller) forget(foo *v1alpha1.Foo) {
	c.fooWrites.Clear(cache.MetaObjectToName(foo))
	c.children.Forget(cache.MetaObjectToName(foo))
	c.told.Delete(cache.MetaObjectToName(foo))
}

// owned returns the Deployments that the cache shows as those of foo.
func (c *Controller) owned(foo *v1alpha1.Foo) ([]*appsv1.Deployment, error) {
	all, err := c.deployments.GetTypedIndexer().ByTypedIndex(owned.ControllerUIDIndex, string(foo.UID))
	return slices.DeleteFunc(slices.Clone(all), func(d *appsv1.Deployment) bool {
		return d.Namespace != foo.Namespace // anybody can write the UID of any owner
	}), err
}

// deleteOthers deletes the Deployments of former names, if that of the name of today is ready. The
// caches may be behind, and a deletion cannot be undone: so deleteOthers asks the servers first.
func (c *Controller) deleteOthers(ctx context.Context, foo *v1alpha1.Foo) error {
	others, err := c.owned(foo)
	others = slices.DeleteFunc(others, func(d *appsv1.Deployment) bool {
		return d.Name == foo.Spec.DeploymentName
	})
	if len(others) == 0 || err != nil {
		return err
	}
	live, err := c.Get(ctx, foo.Namespace, foo.Name)
	if apierrors.IsNotFound(err) || err == nil && live.Generation != foo.Generation {
		return nil // the event of the change is on the way
	}
	if err != nil {
		return err
	}
	named, err := client{c.Clients.Kube.AppsV1().Deployments(foo.Namespace)}.Get(
		ctx, foo.Spec.DeploymentName, metav1.GetOptions{})
	if err == nil && metav1.IsControlledBy(named, foo) &&
		meaning.ReadyCondition(named).Status == metav1.ConditionTrue {
		return c.deleteDeployments(ctx, foo, others)
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// deleteDeployments deletes Deployments of foo. Each must be as the cache has shown it: then foo still
// owns it.
func (c *Controller) deleteDeployments(
	ctx context.Context, foo *v1alpha1.Foo, deployments []*appsv1.Deployment,
) error {
	for _, d := range deployments {
		if d.DeletionTimestamp != nil {
			continue
		}
		err := c.Clients.Kube.AppsV1().Deployments(d.Namespace).Delete(ctx, d.Name,
			metav1.DeleteOptions{
				Preconditions:     &metav1.Preconditions{UID: &d.UID, ResourceVersion: &d.ResourceVersion},
				PropagationPolicy: new(metav1.DeletePropagationBackground),
			})
		if patch.IsGone(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("deleting Deployment: %w", err)
		}
		c.Recorder.Eventf(foo, d, corev1.EventTypeNormal, "DeploymentDeleted", "DeleteDeployment",
			"Deleted Deployment %q", d.Name)
	}
	return nil
}
