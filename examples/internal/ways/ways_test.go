// Package ways_test explores how others write controllers, in the shortest form that shows it.
package ways_test

import (
	"context"
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/sample-controller/docs/foos"
	"example.com/sample-controller/examples/internal/meaning"
	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

func TestExploreSampleController(t *testing.T) {
	explore(t, "https://github.com/kubernetes/sample-controller", sampleController)
}

func TestExploreCronJob(t *testing.T) {
	explore(t, "https://book.kubebuilder.io/cronjob-tutorial/cronjob-tutorial", cronJob)
}

// sampleController creates a Deployment, compares only its count, and always writes the status. An
// update replaces all that others have written.
func sampleController(ctx context.Context, c client.Client, foo *v1alpha1.Foo) error {
	deployment := &appsv1.Deployment{}
	key := client.ObjectKey{Namespace: foo.Namespace, Name: foo.Spec.DeploymentName}
	err := c.Get(ctx, key, deployment)
	if apierrors.IsNotFound(err) {
		deployment = meaning.NewDeployment(foo)
		err = c.Create(ctx, deployment)
	}
	if err != nil {
		return err
	}
	if !metav1.IsControlledBy(deployment, foo) {
		return errors.New("the Deployment exists, and is not managed by the Foo")
	}
	if *foo.Spec.Replicas != *deployment.Spec.Replicas {
		deployment = meaning.NewDeployment(foo)
		if err := c.Update(ctx, deployment); err != nil {
			return err
		}
	}
	foo.Status.AvailableReplicas = deployment.Status.AvailableReplicas
	return c.Status().Update(ctx, foo)
}

// cronJob lists its children by their owner, makes a status of them, deletes what is too old, and
// creates a child whose name depends on nothing but the spec. It changes no child.
func cronJob(ctx context.Context, c client.Client, foo *v1alpha1.Foo) error {
	var children appsv1.DeploymentList
	err := c.List(ctx, &children, client.InNamespace(foo.Namespace),
		client.MatchingFields{ownerIndex: foo.Name})
	if err != nil {
		return err
	}
	foo.Status.AvailableReplicas = 0
	for _, child := range children.Items {
		foo.Status.AvailableReplicas += child.Status.AvailableReplicas
	}
	if err := c.Status().Update(ctx, foo); err != nil {
		return err
	}
	exists := false
	for _, child := range children.Items {
		if child.Name == foo.Spec.DeploymentName {
			exists = true
			continue
		}
		err := c.Delete(ctx, &child, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	if exists {
		return nil
	}
	return c.Create(ctx, meaning.NewDeployment(foo))
}

const ownerIndex = ".metadata.controller"

func explore(
	t *testing.T, about string, sync func(context.Context, client.Client, *v1alpha1.Foo) error,
) {
	t.Helper()
	ctrl.SetLogger(klog.Logger{})
	scheme := runtime.NewScheme()
	must.Do(t, errors.Join(kubescheme.AddToScheme(scheme), v1alpha1.Install(scheme)))
	foos.Expect(t, "../../..", about, func(ctx context.Context, config *rest.Config) error {
		o := ctrl.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}}
		o.Controller.SkipNameValidation = new(true) // there is one after the other
		mgr, err := ctrl.NewManager(config, o)
		if err != nil {
			return err
		}
		err = mgr.GetFieldIndexer().IndexField(ctx, &appsv1.Deployment{}, ownerIndex, ownerOf)
		if err != nil {
			return err
		}
		err = ctrl.NewControllerManagedBy(mgr).For(&v1alpha1.Foo{}).Owns(&appsv1.Deployment{}).
			Complete(reconcile.Func(func(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
				foo := &v1alpha1.Foo{}
				if err := mgr.GetClient().Get(ctx, r.NamespacedName, foo); err != nil {
					return ctrl.Result{}, client.IgnoreNotFound(err)
				}
				return ctrl.Result{}, sync(ctx, mgr.GetClient(), foo)
			}))
		if err != nil {
			return err
		}
		return mgr.Start(ctx)
	})
}

// ownerOf returns the name of the Foo that controls a Deployment.
func ownerOf(deployment client.Object) []string {
	if owner := metav1.GetControllerOf(deployment); owner != nil && owner.Kind == "Foo" {
		return []string{owner.Name}
	}
	return nil
}
