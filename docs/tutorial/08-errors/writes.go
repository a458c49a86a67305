package main

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"example.com/sample-controller/internal/patch"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// createDeployment creates the Deployment of foo. It uses Create and not Apply, because a Create
// cannot take over an object that somebody else has created.
func (c *Controller) createDeployment(
	ctx context.Context, foo *v1alpha1.Foo,
) (observation, error) {
	created, err := c.kubeClient.AppsV1().Deployments(foo.Namespace).Create(
		ctx, newDeployment(foo), metav1.CreateOptions{FieldManager: controllerName})
	if err != nil {
		return handleWriteError(nil, fmt.Errorf("creating Deployment: %w", err))
	}
	c.wrote(ctx, foo, created, "Create", "Created Deployment", "")
	return observation{}, nil
}

// updateDeployment changes the observed Deployment to desired. It sends only the difference, so
// that fields that this program does not know are kept. The API server refuses the write if
// somebody else wrote in between.
func (c *Controller) updateDeployment(
	ctx context.Context, foo *v1alpha1.Foo, observed, desired *appsv1.Deployment,
) (observation, error) {
	updated, err := patch.Send(ctx, c.kubeClient.AppsV1().Deployments(foo.Namespace),
		observed, desired, controllerName)
	if err != nil {
		return handleWriteError(desired, fmt.Errorf("updating Deployment: %w", err))
	}
	c.wrote(ctx, foo, updated, "Update", "Updated Deployment", "")
	return observation{}, nil
}

// deleteOtherDeployments deletes the Deployments that foo owned under other names.
func (c *Controller) deleteOtherDeployments(ctx context.Context, foo *v1alpha1.Foo) error {
	owned, err := c.deploymentsByUID.ByTypedIndex(controllerUIDIndex, string(foo.UID))
	if err != nil {
		return fmt.Errorf("finding the Deployments of the Foo: %w", err)
	}
	for _, deployment := range owned {
		// Anybody can write the UID of any Foo into an owner reference, also in another namespace.
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
		c.wrote(ctx, foo, deployment, "Delete", "Deleted Deployment",
			fmt.Sprintf(", now replaced by %q", foo.Spec.DeploymentName))
	}
	return nil
}

// wrote logs what was done to deployment, and records an Event about it with the reason
// DeploymentCreated, DeploymentUpdated or DeploymentDeleted.
func (c *Controller) wrote(
	ctx context.Context, foo *v1alpha1.Foo, deployment *appsv1.Deployment, verb, message, more string,
) {
	klog.FromContext(ctx).V(2).Info(message, "deployment", klog.KObj(deployment))
	c.recorder.Eventf(foo, deployment, corev1.EventTypeNormal, "Deployment"+verb+"d",
		verb+"Deployment", "%s %q%s", message, deployment.Name, more)
}

// handleWriteError handles the error of a write. deployment is nil if the write was a Create. If
// the API server would refuse the same write again, the observation says so and asks for a slow
// retry. If an object is gone or terminating, the observation is empty. Any other error is
// returned, for a quick retry.
func handleWriteError(deployment *appsv1.Deployment, err error) (observation, error) {
	switch {
	case patch.IsRefusal(err):
		return observation{
			deployment: deployment, ready: new(notReady(reasonRejected, err.Error())),
			retryAfter: blockedRetryDelay, because: "the API server refuses the Deployment",
		}, nil
	case apierrors.IsNotFound(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return observation{}, nil // the event of the deletion brings the key back if the Foo stays
	default:
		return observation{}, err
	}
}
