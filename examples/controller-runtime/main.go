// Command controller-runtime keeps a Deployment running for every Foo, as the controller in the
// repository's root does, with the machinery of sigs.k8s.io/controller-runtime.
//
// Read it in this order: main.go, the Manager; controller.go, how an event leads to a sync, and the
// sync; writes.go, what a sync writes. What a Foo means is in examples/internal/meaning, which all
// implementations share.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"example.com/sample-controller/examples/internal/meaning"
	"example.com/sample-controller/internal/clientconfig"
	"example.com/sample-controller/internal/patch"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

const (
	// shutdownTimeout is how long the Manager waits for what has begun, mostly the last syncs.
	shutdownTimeout = syncTimeout + 2*time.Second

	installHint = "install the CustomResourceDefinition: kubectl apply -f artifacts/examples/crd.yaml"
)

func main() {
	err := run(ctrl.SetupSignalHandler(), os.Args[1:])
	klog.Flush()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "%s: %v\n", controllerName, err)
		os.Exit(1)
	}
}

// options holds what the command line sets.
type options struct {
	kubeconfig, namespace string
	workers               int
	qps                   float64
	manager               ctrl.Options
}

// parseFlags returns the options in args.
func parseFlags(args []string) (*options, error) {
	o := &options{}
	m := &o.manager
	fs := flag.NewFlagSet(controllerName, flag.ContinueOnError)
	klog.InitFlags(fs)
	fs.StringVar(&o.kubeconfig, "kubeconfig", "", "path to a kubeconfig `file`")
	fs.StringVar(&o.namespace, "namespace", "", "the only `namespace` to work in (default: all)")
	fs.IntVar(&o.workers, "workers", 16, "Foos to sync at a time")
	fs.Float64Var(&o.qps, "kube-api-qps", -1, "requests per second, on average; -1 is no limit")
	fs.StringVar(&m.Metrics.BindAddress, "metrics-bind-address", "127.0.0.1:8080",
		"`address` to serve /metrics on; 0 is none")
	fs.StringVar(&m.HealthProbeBindAddress, "health-probe-bind-address", ":8081",
		"`address` to serve /healthz and /readyz on; 0 is none")
	fs.BoolVar(&m.LeaderElection, "leader-elect", false, "work only while holding a Lease")
	m.LeaseDuration = fs.Duration("leader-elect-lease-duration", 15*time.Second,
		"how long the others wait for a leader that is silent")
	m.RenewDeadline = fs.Duration("leader-elect-renew-deadline", 10*time.Second,
		"how long a leader tries to renew before it gives up")
	m.RetryPeriod = fs.Duration("leader-elect-retry-period", 2*time.Second,
		"how long to wait between two tries")
	err := fs.Parse(args)
	if err == nil && fs.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	return o, err
}

// run runs the program until ctx is done, or until it cannot go on, which is an error.
func run(ctx context.Context, args []string) error {
	o, err := parseFlags(args)
	if err != nil {
		return err
	}
	ctrl.SetLogger(klog.Background())
	config, namespace, err := clientconfig.LoadWithNamespace(o.kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = float32(o.qps)
	o.manager.LeaderElectionNamespace = namespace // the Manager itself finds one only in a Pod
	return runManager(ctx, config, o)
}

// runManager runs the Manager until ctx is done, or until it cannot go on, which is an error.
func runManager(ctx context.Context, config *rest.Config, o *options) error {
	if err := o.completeManagerOptions(); err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(config, o.manager) // asks the API server which resources it has
	if err != nil {
		return fmt.Errorf("creating the Manager: %w; %s", err, clientconfig.Hint())
	}
	if err := preflight(ctx, mgr, o.namespace); err != nil {
		return err
	}
	if err := setUp(ctx, mgr, o); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// completeManagerOptions sets what the flags do not: the scheme, and how the Manager makes its
// Cache and its Client.
func (o *options) completeManagerOptions() error {
	m := &o.manager
	m.Scheme = runtime.NewScheme()
	err := errors.Join(kubescheme.AddToScheme(m.Scheme), v1alpha1.Install(m.Scheme))
	if err != nil {
		return fmt.Errorf("building the scheme: %w", err)
	}
	// The memory grows with the Foos, not with the cluster.
	m.Cache = cache.Options{
		ByObject:         map[client.Object]cache.ByObject{&appsv1.Deployment{}: {Label: managed()}},
		DefaultTransform: cache.TransformStripManagedFields(),
	}
	if o.namespace != "" {
		m.Cache.DefaultNamespaces = map[string]cache.Config{o.namespace: {}}
	}
	// A read of an object that this program has written waits until the Cache shows the write: see
	// Reconciler.get.
	m.Client = client.Options{
		FieldOwner: controllerName,
		Cache:      &client.CacheOptions{EnableReadYourWritesConsistency: new(true)},
	}
	m.LeaderElectionID = controllerName
	m.LeaderElectionReleaseOnCancel = true // after the last sync; then main returns at once
	m.GracefulShutdownTimeout = new(shutdownTimeout)
	return nil
}

// managed selects the Deployments that this controller created.
func managed() labels.Selector {
	return labels.SelectorFromSet(labels.Set{meaning.ManagedByLabel: controllerName})
}

// preflight finds out whether the API server serves Foos and lets this program list what it needs.
// Without it, the Manager would wait for the indexed kinds for ever, and not even end on a signal:
// if its context is done then, runnableGroup.Start does not return, but spins.
func preflight(ctx context.Context, mgr ctrl.Manager, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	one := client.ListOptions{Namespace: namespace, Limit: 1}
	err := mgr.GetAPIReader().List(ctx, &v1alpha1.FooList{}, &one)
	if err == nil {
		one.LabelSelector = managed()
		err = mgr.GetAPIReader().List(ctx, &appsv1.DeploymentList{}, &one)
	}
	switch {
	case err == nil:
		return nil
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
		return fmt.Errorf("the API server does not serve foos: %w; %s", err, installHint)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w; grant it, or work in one --namespace", err)
	default:
		return fmt.Errorf("the API server does not answer: %w; %s", err, clientconfig.Hint())
	}
}

// setUp adds to mgr what it runs: the Controller and the health checks.
func setUp(ctx context.Context, mgr ctrl.Manager, o *options) error {
	r := &Reconciler{
		Client:   mgr.GetClient(),
		live:     mgr.GetAPIReader(),
		recorder: mgr.GetEventRecorder(controllerName),
		repairs:  patch.NewRepairs(),
	}
	if err := r.SetupWithManager(ctx, mgr, o.workers); err != nil {
		return fmt.Errorf("setting up the Controller: %w", err)
	}
	synced := func(request *http.Request) error {
		if !mgr.GetCache().WaitForCacheSync(request.Context()) {
			return errors.New("the Cache is not synced")
		}
		return nil
	}
	return errors.Join(
		mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("cache", synced))
}
