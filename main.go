// Command sample-controller keeps a Deployment running for every Foo.
//
// Read it in this order: main.go, the process; controller.go, an event's way from the informers to
// a sync; writes.go, what a sync writes; deployment.go, what a Foo means.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/version"
	"k8s.io/klog/v2"

	"example.com/sample-controller/internal/leader"
	"example.com/sample-controller/internal/metrics"
	"example.com/sample-controller/internal/probes"
	"example.com/sample-controller/internal/recorder"
	fooscheme "example.com/sample-controller/pkg/generated/clientset/versioned/scheme"
	fooinformers "example.com/sample-controller/pkg/generated/informers/externalversions"
)

const (
	// flushTimeout bounds how long a shutdown waits for events to be written; a standby waits as long.
	flushTimeout = time.Second
	// watchErrorGrace is how long a permission or a resource may be missing before the process ends.
	watchErrorGrace = 30 * time.Second
)

func main() {
	err := run(os.Args[1:])
	logs.FlushLogs()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "%s: %s\n", controllerName, strings.ReplaceAll(err.Error(), "\n", " "))
		os.Exit(1)
	}
}

// run runs the process until a signal asks it to stop, for which it returns nil, or until it
// cannot go on.
func run(args []string) error {
	o, err := parseFlags(args, os.Stdout)
	if err != nil {
		return err
	}
	if o.version {
		fmt.Printf("%s %s, commit %s\n", controllerName, version.Get(), version.Get().GitCommit)
		return nil
	}
	if err := logsapi.ValidateAndApply(o.logging, nil); err != nil {
		return err
	}
	signaled, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(signaled, stop) // a second signal ends the process at once

	// fail stops the process as a signal does, what has begun is finished, but with an error.
	ctx, fail := context.WithCancelCause(signaled)
	defer fail(nil)
	if err := runController(ctx, fail, o); err != nil {
		return err
	}
	if signaled.Err() == nil {
		return context.Cause(ctx)
	}
	return nil
}

// runController builds the parts, connects them, and works until ctx is done. The order at the
// end: no new sync begins, those under way finish, their events are written, the Lease is released.
func runController(ctx context.Context, fail context.CancelCauseFunc, o *options) error {
	klog.FromContext(ctx).Info("Starting", "version", version.Get().GitVersion)
	// What the workers need must outlive them.
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()

	var synced atomic.Bool
	clients, err := newClients(o)
	if err != nil {
		return err
	}
	elector, err := leader.NewElector(clients.leader)
	if err != nil {
		return err
	}
	ready := func(*http.Request) error {
		if !synced.Load() {
			return errors.New("the informers' caches are not synced")
		}
		return nil
	}
	if err := probes.Serve(background, o.healthAddress, elector.Check, ready); err != nil {
		return err
	}
	err = metrics.Serve(background, metrics.Config{
		Address: o.metricsAddress, Secure: o.secureMetrics(), CertDir: o.metricsCertPath,
		Reviews: clients.reviews,
	})
	if err != nil {
		return err
	}
	if err := clients.preflight(ctx, o.leaderElect); err != nil {
		return err
	}
	recorder, err := newEventRecorder(ctx, clients.kube)
	if err != nil {
		return err
	}
	kubeFactory, fooFactory := newInformerFactories(clients, o)
	foos := fooFactory.Samplecontroller().V1alpha1().Foos()
	deployments := kubeFactory.Apps().V1().Deployments()
	controller, err := NewController(clients.kube, clients.foo, foos, deployments, recorder)
	if err != nil {
		return err
	}
	for _, informer := range []cache.SharedIndexInformer{foos.Informer(), deployments.Informer()} {
		if err := informer.SetWatchErrorHandlerWithContext(watchErrorHandler(fail, &synced)); err != nil {
			return err
		}
	}
	err = startInformers(ctx, background, o.cacheSyncTimeout, kubeFactory, fooFactory)
	if err != nil {
		return err
	}
	synced.Store(true)

	work := func(ctx context.Context) {
		controller.Run(ctx, o.workers)
		recorder.Flush(flushTimeout)
	}
	if o.leaderElect {
		return elector.Run(ctx, work)
	}
	work(ctx)
	return nil
}

// newEventRecorder returns a recorder of Events about Foos and Deployments.
func newEventRecorder(ctx context.Context, client kubernetes.Interface) (*recorder.Recorder, error) {
	return recorder.New(ctx, client, controllerName, kubescheme.AddToScheme, fooscheme.AddToScheme)
}

// newInformerFactories returns the factories of the two informers. Their memory grows with the
// Foos, not with the cluster: only Deployments that this controller made are listed and watched.
func newInformerFactories(c *clients, o *options) (
	kubeinformers.SharedInformerFactory, fooinformers.SharedInformerFactory,
) {
	// managedFields are often the larger part of an object, and nobody here reads them.
	stripManagedFields := func(object any) (any, error) {
		if accessor, err := meta.Accessor(object); err == nil {
			accessor.SetManagedFields(nil)
		}
		return object, nil
	}
	ours := func(list *metav1.ListOptions) {
		list.LabelSelector = managedByLabel + "=" + controllerName
	}
	return kubeinformers.NewSharedInformerFactoryWithOptions(c.kube, o.resync,
			kubeinformers.WithNamespace(o.namespace),
			kubeinformers.WithTweakListOptions(ours),
			kubeinformers.WithTransform(stripManagedFields)),
		fooinformers.NewSharedInformerFactoryWithOptions(c.foo, o.resync,
			fooinformers.WithNamespace(o.namespace),
			fooinformers.WithTransform(stripManagedFields))
}

// watchErrorHandler ends the process on errors that waiting does not mend: a resource that the
// API server does not serve, and a missing permission. A reflector alone would log them for ever.
// Once the caches are synced, they must go on for watchErrorGrace: an API server that is starting
// forbids for a moment what it will allow.
func watchErrorHandler(
	fail context.CancelCauseFunc, synced *atomic.Bool,
) cache.WatchErrorHandlerWithContext {
	var since, last time.Time // of the errors in a row
	return func(ctx context.Context, reflector *cache.Reflector, err error) {
		hint := ""
		switch {
		case apierrors.IsNotFound(err):
			hint = installHint
		case apierrors.IsForbidden(err):
			hint = "grant it, or narrow the watch with --namespace"
		default:
			cache.DefaultWatchErrorHandler(ctx, reflector, err)
			return
		}
		if time.Since(last) > 3*watchErrorGrace {
			since = time.Now() // the first in a row: a reflector tries again within 60s
		}
		last = time.Now()
		if synced.Load() && time.Since(since) < watchErrorGrace {
			cache.DefaultWatchErrorHandler(ctx, reflector, err)
			return
		}
		fail(fmt.Errorf("%w; %s", err, hint))
	}
}

// informerFactory is what a generated factory of any API group can do.
type informerFactory interface {
	StartWithContext(context.Context)
	WaitForCacheSyncWithContext(context.Context) cache.SyncResult
}

// startInformers starts informers that run until background is done, and waits until their caches
// are synced. When ctx is done before that, it returns nil.
func startInformers(
	ctx, background context.Context, timeout time.Duration, factories ...informerFactory,
) error {
	syncCtx, cancel := context.WithTimeoutCause(ctx, timeout,
		fmt.Errorf("no answer within --cache-sync-timeout=%v", timeout))
	defer cancel()
	for _, factory := range factories {
		factory.StartWithContext(background)
	}
	for _, factory := range factories {
		err := factory.WaitForCacheSyncWithContext(syncCtx).AsError()
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("waiting for the informers' caches: %w", err)
		}
	}
	return nil
}
