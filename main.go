// Command sample-controller keeps a Deployment running for every Foo.
//
// Read it in this order: main.go, the process; controller.go, how an event leads to a sync;
// writes.go, what a sync writes; deployment.go, what a Foo means. The packages below internal/ have
// what any controller needs.
package main

import (
	"context"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/internal/clientconfig"
	"example.com/sample-controller/internal/informers"
	"example.com/sample-controller/internal/leader"
	"example.com/sample-controller/internal/metrics"
	"example.com/sample-controller/internal/probes"
	"example.com/sample-controller/internal/program"
	"example.com/sample-controller/internal/recorder"
	fooscheme "example.com/sample-controller/pkg/generated/clientset/versioned/scheme"
	fooinformers "example.com/sample-controller/pkg/generated/informers/externalversions"
)

// flushTimeout limits how long a shutdown, and so the next leader, waits for Events to be written.
const flushTimeout = time.Second

func main() {
	o, err := parseFlags(os.Args[1:], os.Stdout)
	program.Main(&o.Options, err, func(ctx context.Context) error { return run(ctx, o) })
}

// run runs the process until ctx is done, or until it cannot go on, which is an error.
func run(ctx context.Context, o *options) error {
	config, err := clientconfig.Load(o.Kubeconfig)
	if err != nil {
		return err
	}
	name, err := cache.NewInformerName(controllerName) // of the informers' metrics
	if err != nil {
		return err
	}
	defer name.Release()
	p, err := newProcess(ctx, config, o, name)
	if err != nil {
		return err
	}
	registerMetrics(p.controller.foos)
	return p.run(ctx)
}

// process holds the parts of this program, connected.
type process struct {
	options    *options
	clients    *clients
	elector    *leader.Elector
	recorder   *recorder.Recorder
	informers  *informers.Group
	controller *Controller
}

// newProcess creates the parts and connects them. It makes no request.
func newProcess(
	ctx context.Context, config *rest.Config, o *options, name *cache.InformerName,
) (*process, error) {
	clients, err := newClients(config, o)
	if err != nil {
		return nil, err
	}
	elector, err := leader.NewElector(clients.Leader)
	if err != nil {
		return nil, err
	}
	recorder, err := newRecorder(ctx, clients.Kube)
	if err != nil {
		return nil, err
	}
	kubeFactory, fooFactory := newInformerFactories(clients, o, name)
	foos := fooFactory.Samplecontroller().V1alpha1().Foos()
	deployments := kubeFactory.Apps().V1().Deployments()
	controller, err := NewController(clients.Kube, clients.foo, foos, deployments, recorder)
	if err != nil {
		return nil, err
	}
	return &process{
		options:  o,
		clients:  clients,
		elector:  elector,
		recorder: recorder,
		informers: &informers.Group{
			Factories:   []informers.Factory{fooFactory, kubeFactory},
			Informers:   []cache.SharedIndexInformer{foos.Informer(), deployments.Informer()},
			SyncTimeout: o.CacheSyncTimeout,
			InstallHint: installHint,
		},
		controller: controller,
	}, nil
}

// run starts the parts and works until ctx is done, or until it cannot go on, which is an error.
// What started last stops first: no new sync begins, the running syncs finish, their Events are
// written, the Lease is released, the informers and servers stop.
func (p *process) run(ctx context.Context) error {
	// fail stops the work as ctx does: syncs that have begun are finished. But run returns an error.
	workCtx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	// background is for the servers and informers, which must outlive the work.
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()

	o := p.options
	err := probes.Serve(background, o.HealthAddress, p.elector.Check, p.informers.Check)
	if err != nil {
		return err
	}
	if err := metrics.Serve(background, p.clients.Metrics); err != nil {
		return err
	}
	foos := fooKind.GroupVersion().WithResource("foos")
	if err := p.clients.Preflight(workCtx, foos, installHint, o.leaderElect); err != nil {
		return err
	}
	if err := p.informers.Start(workCtx, background, fail); err != nil {
		return err
	}
	work := func(ctx context.Context) {
		p.controller.Run(ctx, o.Workers)
		p.recorder.Flush(flushTimeout)
	}
	if !o.leaderElect {
		work(workCtx)
	} else if err := p.elector.Run(workCtx, work); err != nil {
		return err
	}
	if ctx.Err() == nil {
		return context.Cause(workCtx) // nobody asked it to stop: it has failed
	}
	return nil
}

// newRecorder returns a recorder of Events about Foos and Deployments.
func newRecorder(ctx context.Context, client kubernetes.Interface) (*recorder.Recorder, error) {
	return recorder.New(ctx, client, controllerName, kubescheme.Scheme, fooscheme.Scheme)
}

// newInformerFactories returns the factories of the two informers. Their memory grows with the
// Foos, not with the cluster: they list and watch only Deployments with managedByLabel. Metrics of
// the informers have that name. If it is nil, there are none.
func newInformerFactories(c *clients, o *options, name *cache.InformerName) (
	kubeinformers.SharedInformerFactory, fooinformers.SharedInformerFactory,
) {
	selectManaged := func(list *metav1.ListOptions) {
		list.LabelSelector = managedByLabel + "=" + controllerName
	}
	return kubeinformers.NewSharedInformerFactoryWithOptions(c.Kube, o.resync,
			kubeinformers.WithNamespace(o.Namespace),
			kubeinformers.WithInformerName(name),
			kubeinformers.WithTweakListOptions(selectManaged),
			kubeinformers.WithTransform(informers.StripManagedFields)),
		fooinformers.NewSharedInformerFactoryWithOptions(c.foo, o.resync,
			fooinformers.WithNamespace(o.Namespace),
			fooinformers.WithInformerName(name),
			fooinformers.WithTransform(informers.StripManagedFields))
}
