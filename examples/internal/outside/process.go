// Package outside is what a controller of Foos that are not in the API server has besides their
// store: the loop of controller.go and the process of main.go in the root, and what leads from a
// Deployment to its Foo without an owner reference.
package outside

import (
	"context"
	"errors"
	"flag"
	"net/http"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	kubeinformers "k8s.io/client-go/informers"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"example.com/sample-controller/examples/internal/meaning"
	"example.com/sample-controller/examples/internal/owned"
	"example.com/sample-controller/internal/consistency"
	"example.com/sample-controller/internal/fairqueue"
	"example.com/sample-controller/internal/informers"
	"example.com/sample-controller/internal/metrics"
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

// SyncErrors counts the syncs that have failed.
var SyncErrors = metrics.NewSyncErrors("outside_foo_controller", "Foo")

// Options holds what the command line of every such controller sets.
type Options struct {
	process.Options
	Resync time.Duration
}

// FlagSet returns the flags, for a program of that name.
func (o *Options) FlagSet(name string) *flag.FlagSet {
	fs := o.Options.FlagSet(name, "Foos")
	fs.DurationVar(&o.Resync, "resync", 10*time.Minute,
		"How often to read the store again, and to look at all Foos and Deployments.")
	return fs
}

// Validate refuses wrong values that can be parsed.
func (o *Options) Validate() error {
	if o.Resync <= 0 {
		return errors.New("--resync must be positive")
	}
	return nil
}

// Controller is what a program has itself.
type Controller interface {
	// Connect is called, before the informers start, until the store is there. Check says whether it
	// is there now.
	Connect(context.Context) error
	Check(*http.Request) error
	// Get reads a Foo from the store. Without a Foo, its error is that of an API server.
	Get(ctx context.Context, namespace, name string) (*v1alpha1.Foo, error)
	// SyncHandler syncs the Foo of a key, when the caches show the last writes for it.
	SyncHandler(context.Context, cache.ObjectName) error
}

// Process is one process of a controller.
type Process struct {
	process.Process
	Queue     workqueue.TypedRateLimitingInterface[cache.ObjectName]
	Foos      listers.FooLister
	FooWrites *consistency.Writes // must have all writes to the store
	Children  *owned.Objects[*v1alpha1.Foo, *appsv1.Deployment]

	controller  Controller
	options     *Options
	deployments cache.TypedSharedIndexInformer[*appsv1.Deployment]
	synced      []cache.DoneChecker
}

// New returns a Process whose Foos are in the store of an informer. It makes no request.
func New(
	ctx context.Context, config *rest.Config, o *Options, c Controller, foos cache.SharedIndexInformer,
) (*Process, error) {
	clients, err := process.NewClients(config, &o.Options)
	if err != nil {
		return nil, err
	}
	p := &Process{
		Process: process.Process{
			Options: &o.Options, Clients: clients, Informers: &informers.Group{SyncTimeout: o.CacheSyncTimeout},
			Served: appsv1.SchemeGroupVersion.WithResource("deployments"),
		},
		Foos:      listers.NewFooLister(foos.GetIndexer()),
		FooWrites: consistency.NewWrites(foos.GetStore()), controller: c, options: o,
	}
	p.Connect, p.Ready, p.Work = p.connect, p.ready, p.work
	var errs [3]error
	p.Recorder, errs[0] = recorder.New(ctx, clients.Kube, o.Leader.Name, kubescheme.Scheme,
		fooscheme.Scheme)
	p.Queue = fairqueue.New(o.Leader.Name,
		workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](
			minRetryDelay, maxRetryDelay), p.isUnobserved)
	p.Children, errs[1] = p.newChildren(cache.NewTypedSharedIndexInformer[*v1alpha1.Foo](foos))
	errs[2] = p.Watch(foos, p.Queue.Add)
	return p, errors.Join(errs[:]...)
}

// newChildren says what Foos own. The handleObject of package owned enqueues the owner of each
// Deployment, whether there is that Foo or not. So Deployments without a Foo are found: at the
// start, when the informer adds all Deployments, and at each resync, when it updates them.
func (p *Process) newChildren(
	foos cache.TypedSharedIndexInformer[*v1alpha1.Foo],
) (*owned.Objects[*v1alpha1.Foo, *appsv1.Deployment], error) {
	name := p.options.Leader.Name
	factory := kubeinformers.NewSharedInformerFactoryWithOptions(p.Clients.Kube, p.options.Resync,
		kubeinformers.WithNamespace(p.options.Namespace), kubeinformers.WithTransform(adopt),
		kubeinformers.WithTweakListOptions(func(list *metav1.ListOptions) {
			list.LabelSelector = meaning.ManagedByLabel + "=" + name
		}))
	p.deployments = factory.Apps().V1().Deployments().TypedInformer()
	p.Informers.Factories = append(p.Informers.Factories, factory)
	p.Informers.Informers = append(p.Informers.Informers, p.deployments)
	children, err := owned.New(owned.Owners[*v1alpha1.Foo]{
		GroupVersionKind: meaning.FooKind, Manager: name, Informer: foos, Recorder: p.Recorder,
		Get:     p.controller.Get,
		IsNew:   func(foo *v1alpha1.Foo) bool { return foo.Status.ObservedGeneration == 0 },
		Enqueue: func(key cache.ObjectName, _ metav1.Object, _ string) { p.Queue.Add(key) },
		EnqueueAfter: func(_ context.Context, key cache.ObjectName, delay time.Duration, _ string) {
			p.Queue.AddAfter(key, delay)
		},
	}, owned.Kind[*v1alpha1.Foo, *appsv1.Deployment]{
		Name: "Deployment", Informer: p.deployments,
		Client: func(namespace string) owned.Client[*appsv1.Deployment] {
			return client{p.Clients.Kube.AppsV1().Deployments(namespace)}
		},
		NameOf:    func(foo *v1alpha1.Foo) string { return foo.Spec.DeploymentName },
		New:       meaning.NewDeployment,
		SetFields: func(d *appsv1.Deployment, foo *v1alpha1.Foo) { setFields(d, foo, name) },
		Ready:     meaning.ReadyCondition,
	})
	if err == nil {
		p.synced = append(p.synced, children.HandlerSynced())
	}
	return children, err
}

// Watch starts an informer with the others, and calls handle with the key of each of its events.
func (p *Process) Watch(informer cache.SharedIndexInformer, handle func(cache.ObjectName)) error {
	factory := fooinformers.NewSharedInformerFactory(nil, 0)
	factory.InformerFor(&v1alpha1.Foo{}, func(clientset.Interface, time.Duration,
	) cache.SharedIndexInformer {
		return informer
	})
	p.Informers.Factories = append(p.Informers.Factories, factory)
	p.Informers.Informers = append(p.Informers.Informers, informer)
	do := func(object any) {
		if key, err := cache.DeletionHandlingObjectToName(object); err == nil {
			handle(key)
		}
	}
	handler, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: do, UpdateFunc: func(_, object any) { do(object) }, DeleteFunc: do,
	})
	if err == nil {
		p.synced = append(p.synced, handler.HasSyncedChecker())
	}
	return err
}

// EnqueueNamespace enqueues all Foos of the namespace of key.
func (p *Process) EnqueueNamespace(key cache.ObjectName) {
	foos, err := p.Foos.Foos(key.Namespace).List(labels.Everything())
	utilruntime.Must(err) // a cache does not fail
	for _, foo := range foos {
		p.Queue.Add(cache.MetaObjectToName(foo))
	}
}

// isUnobserved reports whether the Foo of key is new or changed: such a Foo goes first.
func (p *Process) isUnobserved(key cache.ObjectName) bool {
	foo, err := p.Foos.Foos(key.Namespace).Get(key.Name)
	return err == nil && foo.Status.ObservedGeneration != foo.Generation
}
