// Command 06-renaming moves a Foo to a Deployment of another name, and waits if that is taken.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"example.com/sample-controller/internal/clientconfig"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
	fooinformers "example.com/sample-controller/pkg/generated/informers/externalversions"
)

// workers is how many Foos are synced at a time.
const workers = 16

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
	kubeFactory := kubeinformers.NewSharedInformerFactory(kubeClient, 0)
	fooFactory := fooinformers.NewSharedInformerFactory(fooClient, 0)
	controller, err := NewController(kubeClient,
		fooFactory.Samplecontroller().V1alpha1().Foos(), kubeFactory.Apps().V1().Deployments())
	if err != nil {
		return err
	}
	kubeFactory.StartWithContext(ctx)
	fooFactory.StartWithContext(ctx)
	controller.Run(ctx, workers)
	return nil
}
