// Command controller-runtime serves a page for every Website, and tells a registry of it, as the
// controller in examples/website does, with the machinery of sigs.k8s.io/controller-runtime.
//
// To try it, do what examples/website/main.go says, with this program in place of that one:
//
//	go -C examples run ./website/controller-runtime
//
// Read it in this order: main.go, the Manager; controller.go, the Reconciler and what it does for
// the children; registration.go, the finalizer and the registry. What a Website means is in
// examples/website/meaning, which both programs share.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"example.com/sample-controller/examples/website/meaning"
	"example.com/sample-controller/examples/website/outside"
	"example.com/sample-controller/examples/website/pkg/apis/website/v1alpha1"
)

func main() {
	err := run(ctrl.SetupSignalHandler())
	klog.Flush()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", meaning.ControllerName, err)
		os.Exit(1)
	}
}

// run runs the program until ctx is done, or until it cannot go on, which is an error.
func run(ctx context.Context) error {
	var o ctrl.Options
	klog.InitFlags(nil)
	namespace := flag.String("namespace", "", "the only `namespace` to work in (default: all)")
	workers := flag.Int("workers", 16, "Websites to sync at a time")
	registry := flag.String("registry", "http://127.0.0.1:8090", "`URL` of the registry")
	resync := flag.Duration("resync", 10*time.Minute, "how often to register every Website again")
	flag.StringVar(&o.Metrics.BindAddress, "metrics-bind-address", "127.0.0.1:8080",
		"`address` to serve /metrics on; 0 is none")
	flag.StringVar(&o.HealthProbeBindAddress, "health-probe-bind-address", ":8081",
		"`address` to serve /healthz and /readyz on; 0 is none")
	flag.BoolVar(&o.LeaderElection, "leader-elect", false, "work only while holding a Lease")
	flag.StringVar(&o.LeaderElectionNamespace, "leader-elect-resource-namespace", "",
		"`namespace` of the Lease (default: that of the Pod)")
	flag.Parse() // controller-runtime adds --kubeconfig
	ctrl.SetLogger(klog.Background())

	if err := complete(&o, *namespace); err != nil {
		return err
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	client, err := outside.NewClient(*registry, nil)
	if err != nil {
		return fmt.Errorf("reading --registry: %w", err)
	}
	return runManager(ctx, config, o, &Reconciler{registry: client, resync: *resync}, *workers)
}

// runManager runs a Manager with r until ctx is done, or until it cannot go on, which is an error.
func runManager(
	ctx context.Context, config *rest.Config, o ctrl.Options, r *Reconciler, workers int,
) error {
	mgr, err := ctrl.NewManager(config, o)
	if err != nil {
		return err
	}
	r.Client = boundedClient{mgr.GetClient()}
	r.recorder = mgr.GetEventRecorder(meaning.ControllerName)
	r.live, err = client.New(config, client.Options{
		Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient(),
		FieldOwner: meaning.ControllerName,
	})
	if err != nil {
		return err
	}
	err = errors.Join(r.SetupWithManager(mgr, workers),
		mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("ping", healthz.Ping))
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// complete sets what the flags do not.
func complete(o *ctrl.Options, namespace string) error {
	o.Scheme = runtime.NewScheme()
	err := errors.Join(kubescheme.AddToScheme(o.Scheme), v1alpha1.Install(o.Scheme))
	if err != nil {
		return err
	}
	// The memory grows with the Websites, not with the cluster.
	managed := cache.ByObject{
		Label: labels.SelectorFromSet(labels.Set{meaning.ManagedByLabel: meaning.ControllerName}),
	}
	o.Cache = cache.Options{
		ByObject: map[client.Object]cache.ByObject{
			&corev1.ConfigMap{}: managed, &corev1.Service{}: managed, &appsv1.Deployment{}: managed,
		},
		DefaultTransform: cache.TransformStripManagedFields(),
	}
	if namespace != "" {
		o.Cache.DefaultNamespaces = map[string]cache.Config{namespace: {}}
	}
	// A read of an object that this program has written waits until the Cache shows the write: see
	// boundedClient.
	o.Client = client.Options{
		FieldOwner: meaning.ControllerName,
		Cache:      &client.CacheOptions{EnableReadYourWritesConsistency: new(true)},
	}
	o.LeaderElectionID = meaning.ControllerName
	o.LeaderElectionReleaseOnCancel = true // main returns as soon as the Manager has stopped
	return nil
}
