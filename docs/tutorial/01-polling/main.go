// Command 01-polling reports changes of Deployments by asking for all of them, again and again.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/internal/clientconfig"
)

// pollInterval is how long a change may go unnoticed.
const pollInterval = 5 * time.Second

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
	return poll(ctx, kubeClient, os.Stdout)
}

// poll lists all Deployments every pollInterval until ctx is done, and prints to out what has
// changed since the last time.
func poll(ctx context.Context, kubeClient kubernetes.Interface, out io.Writer) error {
	known := map[cache.ObjectName]appsv1.Deployment{}
	for {
		list, err := kubeClient.AppsV1().Deployments(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		found := map[cache.ObjectName]appsv1.Deployment{}
		for _, deployment := range list.Items {
			found[cache.MetaObjectToName(&deployment)] = deployment
		}
		printChanges(out, known, found)
		known = found
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pollInterval):
		}
	}
}

// printChanges prints what must have happened between two lists.
func printChanges(out io.Writer, before, after map[cache.ObjectName]appsv1.Deployment) {
	for name, deployment := range after {
		old, existed := before[name]
		switch {
		case !existed:
			fmt.Fprintf(out, "%s was added: %d replicas\n", name, *deployment.Spec.Replicas)
		case *old.Spec.Replicas != *deployment.Spec.Replicas:
			fmt.Fprintf(out, "%s was changed: %d replicas\n", name, *deployment.Spec.Replicas)
		}
	}
	for name := range before {
		if _, exists := after[name]; !exists {
			fmt.Fprintf(out, "%s was deleted\n", name)
		}
	}
}
