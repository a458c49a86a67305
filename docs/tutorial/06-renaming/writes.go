package main

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"example.com/sample-controller/internal/patch"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// createDeployment creates the Deployment of foo. It uses Create and not Apply, because a Create
// cannot take over an object that somebody else has created.
func (c *Controller) createDeployment(ctx context.Context, foo *v1alpha1.Foo) error {
	created, err := c.kubeClient.AppsV1().Deployments(foo.Namespace).Create(
		ctx, newDeployment(foo), metav1.CreateOptions{FieldManager: controllerName})
	if err != nil {
		return fmt.Errorf("creating Deployment: %w", err)
	}
	klog.FromContext(ctx).V(2).Info("Created Deployment", "deployment", klog.KObj(created))
	return nil
}

// updateDeployment changes the observed Deployment to desired. It sends only the difference, so
// that fields that this program does not know are kept. The API server refuses the write if
// somebody else wrote in between.
func (c *Controller) updateDeployment(
	ctx context.Context, observed, desired *appsv1.Deployment,
) error {
	updated, err := patch.Send(ctx, c.kubeClient.AppsV1().Deployments(observed.Namespace),
		observed, desired, controllerName)
	if err != nil {
		return fmt.Errorf("updating Deployment: %w", err)
	}
	klog.FromContext(ctx).V(2).Info("Updated Deployment", "deployment", klog.KObj(updated))
	return nil
}

// deleteOtherDeployments deletes the Deployments that foo owned under other names.
func (c *Controller) deleteOtherDeployments(ctx context.Context, foo *v1alpha1.Foo) error {
	owned, err := c.deploymentsByUID.ByTypedIndex(controllerUIDIndex, string(foo.UID))
	if err != nil {
		return fmt.Errorf("finding the Deployments of the Foo: %w", err)
	}
	for _, deployment := range owned {
		// An owner is in the same namespace, but anybody can write the UID of any Foo.
		if deployment.Namespace != foo.Namespace ||
			deployment.Name == foo.Spec.DeploymentName || deployment.DeletionTimestamp != nil {
			continue
		}
		err := c.kubeClient.AppsV1().Deployments(foo.Namespace).Delete(ctx, deployment.Name,
			metav1.DeleteOptions{
				// Only this object, and only if it is unchanged: then the Foo still owns it.
				Preconditions: &metav1.Preconditions{
					UID: &deployment.UID, ResourceVersion: &deployment.ResourceVersion,
				},
				PropagationPolicy: new(metav1.DeletePropagationBackground),
			})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("deleting Deployment of the former name: %w", err)
		}
		klog.FromContext(ctx).V(2).Info("Deleted Deployment", "deployment", klog.KObj(deployment))
	}
	return nil
}

// logNameTaken logs that a Foo names a Deployment that is not its own.
func (c *Controller) logNameTaken(ctx context.Context, taken *appsv1.Deployment) {
	holder := "no controller"
	if owner := metav1.GetControllerOfNoCopy(taken); owner != nil {
		holder = fmt.Sprintf("%s %q", owner.Kind, owner.Name)
	}
	klog.FromContext(ctx).Info("Leaving alone a Deployment that belongs to somebody else",
		"deployment", klog.KObj(taken), "holder", holder)
}
