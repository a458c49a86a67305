package main

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/internal/extra/shards"
	"example.com/sample-controller/internal/informers"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
	fooinformers "example.com/sample-controller/pkg/generated/informers/externalversions"
)

// work runs a controller with informers of its own for one shard. When ctx is done, it waits for
// the syncs that have begun, then it stops the informers. It returns an error if it cannot go on.
func (p *process) work(ctx context.Context, shard shards.Shard) error {
	kubeFactory, fooFactory := newInformerFactories(p.clients, p.options, shard)
	foos := fooFactory.Samplecontroller().V1alpha1().Foos()
	deployments := kubeFactory.Apps().V1().Deployments()
	controller, err := NewController(p.clients.Kube, p.clients.foo, foos, deployments, p.recorder)
	if err != nil {
		return err
	}
	// fail stops the work as ctx does. background is for the informers, which must outlive it.
	workCtx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer func() {
		stop()
		kubeFactory.Shutdown()
		fooFactory.Shutdown()
	}()
	group := &informers.Group{
		Factories:   []informers.Factory{fooFactory, kubeFactory},
		Informers:   []cache.SharedIndexInformer{foos.Informer(), deployments.Informer()},
		SyncTimeout: p.options.CacheSyncTimeout,
		InstallHint: installHint,
	}
	if err := group.Start(workCtx, background, fail); err != nil {
		return err
	}
	controller.Run(workCtx, p.options.Workers)
	if ctx.Err() == nil {
		return context.Cause(workCtx) // nobody asked it to stop: it has failed
	}
	return nil
}

// newInformerFactories returns the factories of the two informers of a shard. InformerFor puts an
// informer into a factory; where the generated code asks for one, it gets that.
func newInformerFactories(c *clients, o *options, shard shards.Shard) (
	kubeinformers.SharedInformerFactory, fooinformers.SharedInformerFactory,
) {
	kubeFactory := kubeinformers.NewSharedInformerFactoryWithOptions(c.Kube, o.resync,
		kubeinformers.WithTransform(informers.StripManagedFields))
	kubeFactory.InformerFor(&appsv1.Deployment{},
		func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
			deployments := client.AppsV1().Deployments(o.Namespace)
			managed := managedByLabel + "=" + controllerName
			source := shards.ListWatch(shard, managed, deployments.List, deployments.Watch)
			return newInformer(source, client, &appsv1.Deployment{}, resync)
		})
	fooFactory := fooinformers.NewSharedInformerFactoryWithOptions(c.foo, o.resync,
		fooinformers.WithTransform(informers.StripManagedFields))
	fooFactory.InformerFor(&v1alpha1.Foo{},
		func(client clientset.Interface, resync time.Duration) cache.SharedIndexInformer {
			foos := client.SamplecontrollerV1alpha1().Foos(o.Namespace)
			source := shards.ListWatch(shard, "", foos.List, foos.Watch)
			return newInformer(source, client, &v1alpha1.Foo{}, resync)
		})
	return kubeFactory, fooFactory
}

// newInformer returns an informer like those that the generated code makes.
func newInformer(
	source *cache.ListWatch, client any, object runtime.Object, resync time.Duration,
) cache.SharedIndexInformer {
	return cache.NewSharedIndexInformer(
		cache.ToListWatcherWithWatchListSemantics(source, client), object, resync,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
}
