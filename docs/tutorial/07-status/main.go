// Command 07-status tells users in the Foo's status how it goes, and in Events what it did.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"k8s.io/apimachinery/pkg/runtime"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"

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

// run connects the parts, and works until ctx is done.
func run(ctx context.Context) error {
	config, err := clusterConfig()
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
	recorder, err := newEventRecorder(ctx, kubeClient)
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
	return nil
}

// clusterConfig returns how to reach the cluster that kubectl would talk to.
func clusterConfig() (*rest.Config, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("no cluster to talk to: %w", err)
	}
	config.QPS = -1 // no limit on this side: the server has one, API Priority and Fairness
	return config, nil
}

// newEventRecorder returns a recorder that writes Events through client.
func newEventRecorder(
	ctx context.Context, client kubernetes.Interface,
) (events.EventRecorder, error) {
	scheme := runtime.NewScheme() // its own, because client-go's is shared by the whole process
	for _, add := range []func(*runtime.Scheme) error{kubescheme.AddToScheme, fooscheme.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("building the scheme of the event recorder: %w", err)
		}
	}
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return nil, fmt.Errorf("starting the event recorder: %w", err)
	}
	context.AfterFunc(ctx, broadcaster.Shutdown)
	return broadcaster.NewRecorder(scheme, controllerName), nil
}
