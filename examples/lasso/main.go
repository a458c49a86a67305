// Command lasso keeps a Deployment running for every Foo, on Rancher's Lasso. What a Foo means is
// in examples/internal/meaning, which all implementations share. The machinery is Lasso's. What
// Lasso does not have is the repository's own.
//
// Read it in this order: main.go, the process; controller.go, the handlers; writes.go, what a sync
// writes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	lassocache "github.com/rancher/lasso/pkg/cache"
	"github.com/rancher/lasso/pkg/controller"
	"github.com/rancher/lasso/pkg/log"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"example.com/sample-controller/examples/internal/meaning"
	"example.com/sample-controller/internal/clientconfig"
	"example.com/sample-controller/internal/leader"
	"example.com/sample-controller/internal/recorder"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	fooscheme "example.com/sample-controller/pkg/generated/clientset/versioned/scheme"
)

const (
	// flushTimeout limits how long a shutdown waits for Events to be written.
	flushTimeout = time.Second

	installHint = "install the CustomResourceDefinition: kubectl apply -f artifacts/examples/crd.yaml"
)

var (
	onlyIn  = flag.String("namespace", "", "The only `namespace` to work in. (default: all)")
	workers = flag.Int("workers", 16, "Foos to sync at a time.")
	qps     = flag.Float64("kube-api-qps", -1, "Requests per second, on average; "+
		"-1 is no limit, 0 is client-go's default, 5.")
	leaderElect   = flag.Bool("leader-elect", false, "Work only while holding a Lease.")
	leaseDuration = flag.Duration("leader-elect-lease-duration", 15*time.Second,
		"How long the others wait for a leader that is silent.")
	renewDeadline = flag.Duration("leader-elect-renew-deadline", 10*time.Second,
		"How long a leader tries to renew before it gives up.")
	retryPeriod = flag.Duration("leader-elect-retry-period", 2*time.Second,
		"How long to wait between two tries.")
)

func main() {
	klog.InitFlags(nil)
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "%s: unexpected argument %q\n", controllerName, flag.Arg(0))
		os.Exit(2)
	}
	log.Infof, log.Errorf = klog.Infof, klog.Errorf // by default, Lasso uses the package log

	signaled, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(signaled, stop) // a second signal ends the process at once
	err := run(signaled)
	klog.Flush()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %s\n", controllerName, strings.ReplaceAll(err.Error(), "\n", " "))
		os.Exit(1)
	}
}

// run creates the parts, connects them, and works until signaled is done. At the end, no new sync
// begins, the running syncs finish, their Events are written, and the Lease is released.
func run(signaled context.Context) error {
	config, namespace, err := clientconfig.LoadWithNamespace("")
	if err != nil {
		return err
	}
	rest.AddUserAgent(config, controllerName)
	kubeClient, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("creating the client for Leases and Events: %w", err)
	}
	config.QPS = float32(*qps) // not for kubeClient: the Lease does not wait behind other requests
	elector, err := leader.NewElector(leader.Config{
		Client: kubeClient.CoordinationV1(), Namespace: namespace, Name: controllerName,
		LeaseDuration: *leaseDuration, RenewDeadline: *renewDeadline, RetryPeriod: *retryPeriod,
	})
	if err != nil {
		return err
	}
	ctx, fail := context.WithCancelCause(signaled)
	defer fail(nil)
	recorder, err := recorder.New(ctx, kubeClient, controllerName, kubescheme.Scheme, fooscheme.Scheme)
	if err != nil {
		return err
	}
	c, err := connect(config, recorder, fail)
	if err != nil {
		return err
	}
	// The caches are filled before this process leads, so that a standby has them when it takes
	// over. ctx does not stop them, because the last syncs need them.
	caches := c.factory.SharedCacheFactory()
	if err := caches.Start(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("starting Lasso's caches: %w", err)
	}
	caches.WaitForCacheSync(ctx)
	work := func(ctx context.Context) {
		if err := c.Run(ctx, *workers); err != nil {
			fail(err)
		}
		recorder.Flush(flushTimeout)
	}
	if !*leaderElect {
		work(ctx)
	} else if err := elector.Run(ctx, work); err != nil {
		return err
	}
	if signaled.Err() == nil {
		return context.Cause(ctx)
	}
	return nil
}

// connect returns a Controller on a Lasso factory. The first request is made in NewController:
// ForKind asks the API server which resource the kind is.
func connect(
	config *rest.Config, recorder events.EventRecorder, fail context.CancelCauseFunc,
) (*Controller, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(kubescheme.AddToScheme(scheme), v1alpha1.Install(scheme)); err != nil {
		return nil, fmt.Errorf("building the scheme: %w", err)
	}
	factory, err := newFactory(config, scheme)
	if err != nil {
		return nil, fmt.Errorf("creating Lasso's factories: %w", err)
	}
	c, err := NewController(factory, recorder, func(err error) {
		fail(fmt.Errorf("filling the caches: %w; %s, or grant the permission", err, installHint))
	})
	switch {
	case meta.IsNoMatchError(err):
		return nil, fmt.Errorf("the API server at %s does not serve foos: %w; %s",
			config.Host, err, installHint)
	case err != nil:
		return nil, fmt.Errorf("asking the API server at %s: %w; %s", config.Host, err,
			clientconfig.Hint())
	}
	return c, nil
}

// newFactory returns a factory of controllers, caches and clients that share what they can.
func newFactory(
	config *rest.Config, scheme *runtime.Scheme,
) (controller.SharedControllerFactory, error) {
	return controller.NewSharedControllerFactoryFromConfigWithOptions(config, scheme,
		&controller.SharedControllerFactoryOptions{
			CacheOptions: &lassocache.SharedCacheFactoryOptions{
				DefaultNamespace: *onlyIn,
				// Memory grows with the Foos, not with the cluster.
				KindTweakList: map[schema.GroupVersionKind]lassocache.TweakListOptionsFunc{
					deploymentKind: func(list *metav1.ListOptions) {
						list.LabelSelector = meaning.ManagedByLabel + "=" + controllerName
					},
				},
			},
			// Only the environment can turn off Lasso's resync (CATTLE_RESYNC_DEFAULT=0; a Resync of 0
			// means 10 h). But SyncOnlyChangedObjects drops its events.
			SyncOnlyChangedObjects: true,
			// 5ms, 10ms, 20ms, ... 20.48s, 30s, 30s, ... All kinds would share a DefaultRateLimiter,
			// which would take a Deployment and a Foo of the same name for the same key.
			//nolint:staticcheck // Lasso's queues are untyped
			KindRateLimiter: map[schema.GroupVersionKind]workqueue.RateLimiter{
				meaning.FooKind: workqueue.NewTypedItemExponentialFailureRateLimiter[any](
					5*time.Millisecond, 30*time.Second),
			},
			KindWorkers: map[schema.GroupVersionKind]int{deploymentKind: 1},
		})
}
