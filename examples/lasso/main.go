// Command lasso keeps a Deployment running for every Foo, on Rancher's Lasso. What a Foo means is
// in examples/internal/meaning, which all implementations share. The machinery is Lasso's. What
// Lasso does not have is the repository's own.
//
// Read it in this order: main.go, the process; controller.go, the handlers; writes.go, what a sync
// writes.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	lassocache "github.com/rancher/lasso/pkg/cache"
	"github.com/rancher/lasso/pkg/controller"
	"github.com/rancher/lasso/pkg/log"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"example.com/sample-controller/examples/internal/meaning"
	"example.com/sample-controller/internal/informers"
	"example.com/sample-controller/internal/process"
	"example.com/sample-controller/internal/recorder"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	fooscheme "example.com/sample-controller/pkg/generated/clientset/versioned/scheme"
)

const installHint = "install the CustomResourceDefinition: " +
	"kubectl apply -f artifacts/examples/crd.yaml"

func main() {
	o := &process.Options{}
	err := o.Parse(o.FlagSet(controllerName, "Foos"), os.Args[1:], os.Stdout,
		"keeps a Deployment running for every Foo", func() error { return nil })
	process.Main(o, err, func(ctx context.Context) error { return run(ctx, o) })
}

// run creates the parts, connects them, and works until ctx is done, or until it cannot go on, which
// is an error.
func run(ctx context.Context, o *process.Options) error {
	log.Infof, log.Errorf = klog.Infof, klog.Errorf // by default, Lasso uses the package log
	config, err := o.Load()
	if err != nil {
		return err
	}
	clients, err := process.NewClients(config, o)
	if err != nil {
		return err
	}
	recorder, err := recorder.New(ctx, clients.Kube, controllerName, kubescheme.Scheme, fooscheme.Scheme)
	if err != nil {
		return err
	}
	factory, err := newFactory(clients.Config, o.Namespace)
	if err != nil {
		return fmt.Errorf("creating Lasso's factories: %w", err)
	}
	foos, fooErr := newCache(factory, fooResource, meaning.FooKind.Kind,
		cache.Indexers{deploymentNameIndex: deploymentName})
	deployments, deploymentErr := newCache(factory, deploymentResource, deploymentKind.Kind,
		cache.Indexers{controllerUIDIndex: controllerUID})
	if err := errors.Join(fooErr, deploymentErr); err != nil {
		return fmt.Errorf("creating Lasso's caches: %w", err)
	}
	c := NewController(factory, foos, deployments, recorder)
	var workErr error // which Process does not take
	p := process.Process{
		Options: o, Clients: clients, Recorder: recorder,
		Informers: &informers.Group{
			Factories:   []informers.Factory{caches{factory.SharedCacheFactory()}},
			Informers:   []cache.SharedIndexInformer{foos, deployments},
			SyncTimeout: o.CacheSyncTimeout,
			InstallHint: installHint,
		},
		Served: fooResource,
		Work:   func(ctx context.Context, workers int) { workErr = c.Run(ctx, workers) },
	}
	err = p.Run(ctx)
	return cmp.Or(workErr, err)
}

// caches are Lasso's, as an informers.Group starts them.
type caches struct{ lassocache.SharedCacheFactory }

func (c caches) StartWithContext(ctx context.Context) {
	_ = c.Start(ctx) // v0.2.9 returns no error
}

func (c caches) WaitForCacheSyncWithContext(ctx context.Context) cache.SyncResult {
	c.WaitForCacheSync(ctx)
	return cache.SyncResult{Err: context.Cause(ctx)}
}

// newFactory returns a factory of controllers, caches and clients that share what they can.
func newFactory(config *rest.Config, namespace string) (controller.SharedControllerFactory, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(kubescheme.AddToScheme(scheme), v1alpha1.Install(scheme)); err != nil {
		return nil, fmt.Errorf("building the scheme: %w", err)
	}
	return controller.NewSharedControllerFactoryFromConfigWithOptions(config, scheme,
		&controller.SharedControllerFactoryOptions{
			CacheOptions: &lassocache.SharedCacheFactoryOptions{
				DefaultNamespace: namespace,
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
