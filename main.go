// Command sample-controller keeps a Deployment running for every Foo.
//
// Read it in this order: main.go, the process; controller.go, how an event leads to a sync;
// status.go, what a sync does and reports; writes.go, its writes to Deployments; deployment.go, what
// a Foo means. The packages below internal/ have what any controller needs.
package main

import (
	"context"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/internal/clientconfig"
	"example.com/sample-controller/internal/informers"
	"example.com/sample-controller/internal/leader"
	"example.com/sample-controller/internal/process"
	"example.com/sample-controller/internal/recorder"
	fooscheme "example.com/sample-controller/pkg/generated/clientset/versioned/scheme"
	fooinformers "example.com/sample-controller/pkg/generated/informers/externalversions"
)

func main() {
	o, err := parseFlags(os.Args[1:], os.Stdout)
	process.Main(&o.Options, err, func(ctx context.Context) error { return run(ctx, o) })
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
	p, controller, err := newProcess(ctx, config, o, name)
	if err != nil {
		return err
	}
	registerMetrics(controller.foos)
	return p.Run(ctx)
}

// newProcess creates the parts of the program and connects them. It makes no request.
func newProcess(
	ctx context.Context, config *rest.Config, o *options, name *cache.InformerName,
) (*process.Process, *Controller, error) {
	clients, err := newClients(config, o)
	if err != nil {
		return nil, nil, err
	}
	elector, err := leader.NewElector(clients.Leader)
	if err != nil {
		return nil, nil, err
	}
	recorder, err := newRecorder(ctx, clients.Kube)
	if err != nil {
		return nil, nil, err
	}
	kubeFactory, fooFactory := newInformerFactories(clients, o, name)
	foos := fooFactory.Samplecontroller().V1alpha1().Foos()
	deployments := kubeFactory.Apps().V1().Deployments()
	controller, err := NewController(clients.Kube, clients.foo, foos, deployments, recorder)
	if err != nil {
		return nil, nil, err
	}
	return &process.Process{
		Options:  &o.Options,
		Clients:  clients.Clients,
		Elector:  elector,
		Recorder: recorder,
		Informers: &informers.Group{
			Factories:   []informers.Factory{fooFactory, kubeFactory},
			Informers:   []cache.SharedIndexInformer{foos.Informer(), deployments.Informer()},
			SyncTimeout: o.CacheSyncTimeout,
			InstallHint: installHint,
		},
		Served: fooKind.GroupVersion().WithResource("foos"),
		Work:   controller.Run,
	}, controller, nil
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
