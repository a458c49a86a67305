// Command 03-foo creates a Deployment for each Foo, in the simplest way that seems to work.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"example.com/sample-controller/internal/clientconfig"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
	fooinformers "example.com/sample-controller/pkg/generated/informers/externalversions"
	informers "example.com/sample-controller/pkg/generated/informers/externalversions/samplecontroller/v1alpha1"
)

func main() {
	klog.InitFlags(nil)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run connects the parts and works until ctx is done.
func run(ctx context.Context) error {
	config, err := clientconfig.Load("")
	if err != nil {
		return err
	}
	kubeClient, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	fooClient, err := clientset.NewForConfig(config)
	if err != nil {
		return err
	}
	fooFactory := fooinformers.NewSharedInformerFactory(fooClient, 0)
	foos := fooFactory.Samplecontroller().V1alpha1().Foos()
	if err := addEventHandlers(ctx, foos, kubeClient); err != nil {
		return err
	}
	fooFactory.StartWithContext(ctx)
	<-ctx.Done()
	fooFactory.Shutdown()
	return nil
}

// addEventHandlers registers a callback that creates a Deployment for each Foo that is added, and
// for each that the informer finds when it starts.
func addEventHandlers(
	ctx context.Context, foos informers.TypedFooInformer, kubeClient kubernetes.Interface,
) error {
	_, err := foos.TypedInformer().AddTypedEventHandler(informers.FooHandlerFuncs{
		AddFunc: func(foo *v1alpha1.Foo) {
			logger := klog.LoggerWithValues(klog.FromContext(ctx), "foo", klog.KObj(foo))
			created, err := kubeClient.AppsV1().Deployments(foo.Namespace).Create(
				ctx, newDeployment(foo), metav1.CreateOptions{})
			if err != nil {
				logger.Error(err, "Creating the Deployment failed")
				return
			}
			logger.Info("Created Deployment", "deployment", klog.KObj(created))
		},
	})
	return err
}
