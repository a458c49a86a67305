package main

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// createDeployment creates the Deployment of foo. It is a Create and not an Apply, because Create
// cannot take over an object that somebody else made.
func (c *Controller) createDeployment(ctx context.Context, foo *v1alpha1.Foo) error {
	created, err := c.kubeClient.AppsV1().Deployments(foo.Namespace).Create(
		ctx, newDeployment(foo), metav1.CreateOptions{FieldManager: controllerName})
	if err != nil {
		return fmt.Errorf("creating Deployment: %w", err)
	}
	klog.FromContext(ctx).V(2).Info("Created Deployment", "deployment", klog.KObj(created))
	return nil
}

// updateDeployment writes desired, a changed copy of what was read. Its resourceVersion makes the
// API server refuse the write if somebody else wrote since.
func (c *Controller) updateDeployment(ctx context.Context, desired *appsv1.Deployment) error {
	updated, err := c.kubeClient.AppsV1().Deployments(desired.Namespace).Update(
		ctx, desired, metav1.UpdateOptions{FieldManager: controllerName})
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
		if deployment.Name == foo.Spec.DeploymentName || deployment.DeletionTimestamp != nil {
			continue
		}
		err := c.kubeClient.AppsV1().Deployments(foo.Namespace).Delete(ctx, deployment.Name,
			metav1.DeleteOptions{
				// Just the object that the cache shows, unchanged: still owned by this Foo.
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

// reportNameTaken reports that the Deployment that foo names is not its own.
func (c *Controller) reportNameTaken(
	ctx context.Context, foo *v1alpha1.Foo, taken *appsv1.Deployment,
) error {
	return c.updateStatus(ctx, foo, desiredStatus(foo, nil, nameTaken(taken)))
}

// syncStatusOnly is the sync of a Foo that is being deleted. Its Deployment goes with it, or stays
// with --cascade=orphan, so nothing is made and nothing repaired. But somebody's finalizer may hold
// the Foo for long: what its status says stays true.
func (c *Controller) syncStatusOnly(ctx context.Context, foo *v1alpha1.Foo) error {
	observed, err := c.deployments.Deployments(foo.Namespace).Get(foo.Spec.DeploymentName)
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	// If there is none, observed is nil.
	return c.updateStatus(ctx, foo, terminatingStatus(foo, observed))
}

// updateStatus writes the status of foo if it is to change. The API server takes nothing but the
// status, and refuses one that was computed from an older Foo (resourceVersion) or from another one
// of that name (UID).
func (c *Controller) updateStatus(
	ctx context.Context, foo *v1alpha1.Foo, desired v1alpha1.FooStatus,
) error {
	if equality.Semantic.DeepEqual(foo.Status, desired) {
		return nil
	}
	updated := foo.DeepCopy() // foo is the cache's
	updated.Status = desired
	_, err := c.fooClient.SamplecontrollerV1alpha1().Foos(foo.Namespace).UpdateStatus(
		ctx, updated, metav1.UpdateOptions{FieldManager: controllerName})
	if apierrors.IsNotFound(err) {
		return nil // deleted; its event is on the way
	}
	if err != nil {
		return fmt.Errorf("updating status: %w", err)
	}
	return nil
}
