// Command website-controller serves a page for every Website, and tells a registry outside the
// cluster of it. It has what a controller of one child does not need: several children, of which one
// is rolled when another changes, a finalizer, and something outside Kubernetes.
//
// Read it in this order: main.go, the process; controller.go, how an event leads to a sync;
// children.go, what a Website owns; registration.go, the finalizer and the registry; status.go; the
// package meaning, what a Website means; and the package outside, which is the registry. The
// packages below internal/ have what any controller needs. The package conformance tests the whole
// from the outside.
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeinformers "k8s.io/client-go/informers"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/examples/website/meaning"
	"example.com/sample-controller/examples/website/outside"
	"example.com/sample-controller/examples/website/pkg/apis/website/v1alpha1"
	clientset "example.com/sample-controller/examples/website/pkg/generated/clientset/versioned"
	websitescheme "example.com/sample-controller/examples/website/pkg/generated/clientset/versioned/scheme"
	websiteinformers "example.com/sample-controller/examples/website/pkg/generated/informers/externalversions"
	"example.com/sample-controller/internal/informers"
	"example.com/sample-controller/internal/metrics"
	"example.com/sample-controller/internal/process"
	"example.com/sample-controller/internal/recorder"
)

const installHint = "install the CustomResourceDefinition: " +
	"kubectl apply -f examples/website/artifacts/crd.yaml"

func main() {
	o, err := parseFlags(os.Args[1:], os.Stdout)
	process.Main(&o.Options, err, func(ctx context.Context) error { return run(ctx, o) })
}

// options holds what the command line sets.
type options struct {
	process.Options // that of every controller
	registry        string
	resync          time.Duration
}

// parseFlags returns the options in args. With --help, it prints the flags to usage and returns
// flag.ErrHelp.
func parseFlags(args []string, usage io.Writer) (*options, error) {
	o := &options{}
	fs := o.FlagSet(controllerName, "Websites")
	fs.StringVar(&o.registry, "registry", "http://127.0.0.1:8090", "`URL` of the registry.")
	fs.DurationVar(&o.resync, "resync", 10*time.Minute, "How often to register every Website again, "+
		"even if nothing changed: the registry may have lost it.")
	return o, o.Parse(fs, args, usage, "serves a page for every Website", o.validate)
}

// validate refuses wrong values that can be parsed.
func (o *options) validate() error {
	if o.resync <= 0 {
		return fmt.Errorf("--resync must be positive, not %v", o.resync)
	}
	return nil
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
	p, controller, err := newProcess(ctx, config, o, name, nil)
	if err != nil {
		return err
	}
	registerMetrics(controller)
	return p.Run(ctx)
}

// newProcess creates the parts of the program and connects them. It makes no request. If registry is nil, the
// registry is reached as any HTTP server.
func newProcess(
	ctx context.Context, config *rest.Config, o *options, name *cache.InformerName,
	registry http.RoundTripper,
) (*process.Process, *Controller, error) {
	clients, err := newClients(config, o, registry)
	if err != nil {
		return nil, nil, err
	}
	recorder, err := recorder.New(
		ctx, clients.Kube, controllerName, kubescheme.Scheme, websitescheme.Scheme)
	if err != nil {
		return nil, nil, err
	}
	kubeFactory, websiteFactory := newInformerFactories(clients, o, name)
	websites := websiteFactory.Website().V1alpha1().Websites()
	controller, err := NewController(clients.Kube, clients.website, clients.registry, o.resync,
		websites, kubeFactory, recorder)
	if err != nil {
		return nil, nil, err
	}
	return &process.Process{
		Options: &o.Options, Clients: clients.Clients, Recorder: recorder,
		Informers: &informers.Group{
			Factories:   []informers.Factory{websiteFactory, kubeFactory},
			Informers:   append(controller.children.Informers(), websites.Informer()),
			SyncTimeout: o.CacheSyncTimeout,
			InstallHint: installHint,
		},
		Served: websiteKind.GroupVersion().WithResource("websites"),
		Work:   controller.Run,
	}, controller, nil
}

// clients holds the clients for the API server, and that for the registry.
type clients struct {
	*process.Clients // those of every controller
	website          clientset.Interface
	registry         *outside.Client
}

// newClients returns clients for a cluster, and for the registry. It makes no request.
func newClients(config *rest.Config, o *options, registry http.RoundTripper) (*clients, error) {
	shared, err := process.NewClients(config, &o.Options)
	if err != nil {
		return nil, err
	}
	c := &clients{Clients: shared}
	if c.website, err = clientset.NewForConfig(c.Config); err != nil {
		return nil, fmt.Errorf("creating the client for Websites: %w", err)
	}
	if c.registry, err = outside.NewClient(o.registry, registry); err != nil {
		return nil, fmt.Errorf("reading --registry: %w", err)
	}
	return c, nil
}

// newInformerFactories returns the factories of the informers. Their memory grows with the
// Websites, not with the cluster: of other kinds, they list and watch only objects with
// meaning.ManagedByLabel. Metrics of the informers have that name. If it is nil, there are none.
func newInformerFactories(c *clients, o *options, name *cache.InformerName) (
	kubeinformers.SharedInformerFactory, websiteinformers.SharedInformerFactory,
) {
	selectManaged := func(list *metav1.ListOptions) {
		list.LabelSelector = meaning.ManagedByLabel + "=" + controllerName
	}
	// No informer has a resync: register says when a Website is to be looked at again.
	return kubeinformers.NewSharedInformerFactoryWithOptions(c.Kube, 0,
			kubeinformers.WithNamespace(o.Namespace),
			kubeinformers.WithInformerName(name),
			kubeinformers.WithTweakListOptions(selectManaged),
			kubeinformers.WithTransform(informers.StripManagedFields)),
		websiteinformers.NewSharedInformerFactoryWithOptions(c.website, 0,
			websiteinformers.WithNamespace(o.Namespace),
			websiteinformers.WithInformerName(name),
			websiteinformers.WithTransform(informers.StripManagedFields))
}

// metricsSubsystem begins the names of the metrics that only this controller has, as in
// job_controller_job_syncs_total of Kubernetes itself.
const metricsSubsystem = "website_controller"

var syncErrors = metrics.NewSyncErrors(metricsSubsystem, "Website")

// websiteReasons and those of the children are the only reasons that have a series of their own.
var websiteReasons = []string{
	meaning.ReasonAvailable, meaning.ReasonProgressing, meaning.ReasonRolloutFailed,
	meaning.ReasonWebsiteTerminating,
}

// registerMetrics makes the program serve the metrics that only this controller has. It may be
// called only once.
func registerMetrics(c *Controller) {
	syncErrors.Register()
	metrics.RegisterReadiness(metrics.Objects[*v1alpha1.Website]{
		Subsystem:  metricsSubsystem,
		Plural:     "Websites",
		List:       c.websites.List,
		Conditions: func(w *v1alpha1.Website) []metav1.Condition { return w.Status.Conditions },
		Reasons:    append(websiteReasons, c.children.NotReadyReasons()...),
	})
}
