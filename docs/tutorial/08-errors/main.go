// Command 08-errors also reports refused writes in the status, and its own actions in Events.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"

	"example.com/sample-controller/internal/clientconfig"
	"example.com/sample-controller/internal/recorder"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
	fooscheme "example.com/sample-controller/pkg/generated/clientset/versioned/scheme"
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
	recorder, err := newRecorder(ctx, kubeClient)
	if err != nil {
		return err
	}
	kubeFactory := kubeinformers.NewSharedInformerFactory(kubeClient, 0)
	fooFactory := fooinformers.NewSharedInformerFactory(fooClient, 0)
	controller, err := NewController(kubeClient, fooClient,
		fooFactory.Samplecontroller().V1alpha1().Foos(), kubeFactory.Apps().V1().Deployments(), recorder)
	if err != nil {
		return err
	}
	kubeFactory.StartWithContext(ctx)
	fooFactory.StartWithContext(ctx)
	controller.Run(ctx, workers)
	recorder.Flush(time.Second) // not longer, since nothing depends on Events
	return nil
}

// newRecorder returns a recorder of Events about Foos and Deployments.
func newRecorder(ctx context.Context, client kubernetes.Interface) (*recorder.Recorder, error) {
	return recorder.New(ctx, client, controllerName, kubescheme.Scheme, fooscheme.Scheme)
}
