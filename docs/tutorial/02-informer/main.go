// Command 02-informer reports changes of Deployments as soon as the API server reports them.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	"k8s.io/client-go/kubernetes"
	appslisters "k8s.io/client-go/listers/apps/v1"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/internal/clientconfig"
)

func main() {
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
	return inform(ctx, kubeClient, os.Stdout)
}

// inform prints the events of Deployments to out until ctx is done.
func inform(ctx context.Context, kubeClient kubernetes.Interface, out io.Writer) error {
	factory := informers.NewSharedInformerFactory(kubeClient, 0)
	deployments := factory.Apps().V1().Deployments()
	handler, err := addEventHandlers(deployments, out)
	if err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	if !cache.WaitFor(ctx, "", handler.HasSyncedChecker()) {
		return errors.New("stopped before the first list was complete")
	}
	if err := printSum(deployments.Lister(), out); err != nil {
		return err
	}
	<-ctx.Done()
	factory.Shutdown()
	return nil
}

// addEventHandlers makes the informer call back for each Deployment that is added, changed or
// deleted, and for each that it finds when it starts.
func addEventHandlers(
	deployments appsinformers.TypedDeploymentInformer, out io.Writer,
) (cache.ResourceEventHandlerRegistration, error) {
	return deployments.TypedInformer().AddTypedEventHandler(appsinformers.DeploymentHandlerFuncs{
		AddFunc: func(deployment *appsv1.Deployment) {
			fmt.Fprintf(out, "%s was added: %d replicas\n", cache.MetaObjectToName(deployment),
				*deployment.Spec.Replicas)
		},
		UpdateFunc: func(old, deployment *appsv1.Deployment) {
			if *old.Spec.Replicas != *deployment.Spec.Replicas {
				fmt.Fprintf(out, "%s was changed: %d replicas\n", cache.MetaObjectToName(deployment),
					*deployment.Spec.Replicas)
			}
		},
		DeleteFunc: func(deleted appsinformers.DeletedDeployment) {
			fmt.Fprintf(out, "%s was deleted\n", deleted.GetObjectName())
		},
	})
}

// printSum prints how many Deployments there are, and how many replicas they ask for. It makes no
// request: the lister reads what the informer keeps in memory.
func printSum(deployments appslisters.DeploymentLister, out io.Writer) error {
	all, err := deployments.List(labels.Everything())
	if err != nil {
		return err
	}
	replicas := int32(0)
	for _, deployment := range all {
		replicas += *deployment.Spec.Replicas
	}
	fmt.Fprintf(out, "watching %d Deployments with %d replicas\n", len(all), replicas)
	return nil
}
