// Command sample-controller keeps a Deployment running for every Foo.
//
// Read it in this order: controller.go, how an event leads to a sync; status.go, what a sync does and
// reports; writes.go, its writes to Deployments; deployment.go, what a Foo means; main.go, the
// process. The packages below internal/ have what any controller needs.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

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

const installHint = "install the CustomResourceDefinition: " +
	"kubectl apply -f artifacts/examples/crd.yaml"

func main() {
	o, err := parseFlags(os.Args[1:], os.Stdout)
	process.Main(&o.Options, err, func(ctx context.Context) error { return run(ctx, o) })
}

// run runs the process until ctx is done, or until it cannot go on, which is an error.
func run(ctx context.Context, o *options) error {
	config, err := o.Load()
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

// options holds what the command line sets.
type options struct {
	process.Options // that of every controller
	resync          time.Duration
}

// parseFlags returns the options in args. With --help, it prints the flags to usage and returns
// flag.ErrHelp.
func parseFlags(args []string, usage io.Writer) (*options, error) {
	o := &options{}
	fs := o.FlagSet(controllerName, "Foos")
	fs.DurationVar(&o.resync, "resync", 0, "How often to sync every Foo even if nothing changed; "+
		"0 means never. A resync reads the cache, not the API server.")
	return o, o.Parse(fs, args, usage, "keeps a Deployment running for every Foo", o.validate)
}

// validate refuses wrong values that can be parsed.
func (o *options) validate() error {
	if o.resync < 0 {
		return fmt.Errorf("--resync must not be negative, but is %v", o.resync)
	}
	return nil
}

// newProcess creates the parts of the program and connects them. It makes no request.
func newProcess(
	ctx context.Context, config *rest.Config, o *options, name *cache.InformerName,
) (*process.Process, *Controller, error) {
	clients, err := newClients(config, o)
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

// clients holds the clients for the API server.
type clients struct {
	*process.Clients // those of every controller
	foo              clientset.Interface
}

// newClients returns clients for a cluster. It makes no request.
func newClients(config *rest.Config, o *options) (*clients, error) {
	c, err := process.NewClients(config, &o.Options)
	if err != nil {
		return nil, err
	}
	foo, err := clientset.NewForConfig(c.Config)
	if err != nil {
		return nil, fmt.Errorf("creating the client for Foos: %w", err)
	}
	return &clients{Clients: c, foo: foo}, nil
}

// newRecorder returns a recorder of Events about Foos and Deployments.
func newRecorder(ctx context.Context, client kubernetes.Interface) (*recorder.Recorder, error) {
	return recorder.New(ctx, client, controllerName, kubescheme.Scheme, fooscheme.Scheme)
}

// newInformerFactories returns the factories of the two informers. Their memory grows with the
// Foos, not with the cluster: they list and watch only Deployments with managedByLabel. The
// metrics of the informers have name as a label. If name is nil, there are no such metrics.
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

// metricsSubsystem begins the names of the metrics that only this controller has, as in
// job_controller_job_syncs_total of Kubernetes itself.
const metricsSubsystem = "foo_controller"

var syncErrors = metrics.NewSyncErrors(metricsSubsystem, "Foo")

// fooReasons are the only reasons of Foos that have a series of their own.
var fooReasons = []string{
	reasonAvailable, reasonProgressing, reasonPaused, reasonTerminating, reasonNameTaken,
	reasonRejected, reasonFooTerminating, reasonNotKept, reasonContested,
	// These are reasons of the Deployment controller, which readyCondition passes on.
	"FailedCreate", "FailedDelete", "ProgressDeadlineExceeded", "ReplicaSetCreateError",
}

// registerMetrics makes the program serve the metrics that only this controller has. It may be
// called only once.
func registerMetrics(foos listers.FooLister) {
	syncErrors.Register()
	metrics.RegisterReadiness(metrics.Objects[*v1alpha1.Foo]{
		Subsystem:  metricsSubsystem,
		Plural:     "Foos",
		List:       foos.List,
		Conditions: func(foo *v1alpha1.Foo) []metav1.Condition { return foo.Status.Conditions },
		Reasons:    fooReasons,
	})
}
