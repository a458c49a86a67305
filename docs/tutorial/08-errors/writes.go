package main

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// Reasons of the Normal events.
const (
	reasonCreated = "DeploymentCreated"
	reasonUpdated = "DeploymentUpdated"
	reasonDeleted = "DeploymentDeleted"
)

// createDeployment creates the Deployment of foo. It is a Create and not an Apply, because Create
// cannot take over an object that somebody else made.
func (c *Controller) createDeployment(ctx context.Context, foo *v1alpha1.Foo) error {
	created, err := c.kubeClient.AppsV1().Deployments(foo.Namespace).Create(
		ctx, newDeployment(foo), metav1.CreateOptions{FieldManager: controllerName})
	if err != nil {
		return c.handleWriteError(ctx, foo, nil, fmt.Errorf("creating Deployment: %w", err))
	}
	klog.FromContext(ctx).V(2).Info("Created Deployment", "deployment", klog.KObj(created))
	c.recorder.Eventf(foo, created, corev1.EventTypeNormal, reasonCreated, "CreateDeployment",
		"Created Deployment %q", created.Name)
	return nil
}

// updateDeployment writes desired, a changed copy of what was read. Its resourceVersion makes the
// API server refuse the write if somebody else wrote since.
func (c *Controller) updateDeployment(
	ctx context.Context, foo *v1alpha1.Foo, desired *appsv1.Deployment,
) error {
	updated, err := c.kubeClient.AppsV1().Deployments(foo.Namespace).Update(
		ctx, desired, metav1.UpdateOptions{FieldManager: controllerName})
	if err != nil {
		return c.handleWriteError(ctx, foo, desired, fmt.Errorf("updating Deployment: %w", err))
	}
	klog.FromContext(ctx).V(2).Info("Updated Deployment", "deployment", klog.KObj(updated))
	c.recorder.Eventf(foo, updated, corev1.EventTypeNormal, reasonUpdated, "UpdateDeployment",
		"Updated Deployment %q", updated.Name)
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
		c.recorder.Eventf(foo, deployment, corev1.EventTypeNormal, reasonDeleted, "DeleteDeployment",
			"Deleted Deployment %q, now replaced by %q", deployment.Name, foo.Spec.DeploymentName)
	}
	return nil
}

// handleWriteError tells apart the errors of a write to deployment, nil if it was to be created.
// A refusal that the same write would meet again is reported in the status and retried slowly; an
// object that is gone or going is nothing to do; everything else is returned, for a retry.
func (c *Controller) handleWriteError(
	ctx context.Context, foo *v1alpha1.Foo, deployment *appsv1.Deployment, err error,
) error {
	switch {
	case apierrors.IsNotFound(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil // the event of the deletion brings the key back if the Foo stays
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err):
		c.queue.AddAfter(cache.MetaObjectToName(foo), blockedRetryDelay)
		ready := notReady(reasonRejected, err.Error())
		return c.updateStatus(ctx, foo, desiredStatus(foo, deployment, ready))
	default:
		return err
	}
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

// updateStatus writes the status of foo if it is to change, and an event if it tells of a failure
// that was not there before. The API server takes nothing but the status, and refuses one that was
// computed from an older Foo (resourceVersion) or from another one of that name (UID).
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
	c.recordFailure(foo, desired)
	return nil
}

// recordFailure records a Warning event if desired tells of a failure that the status of foo does
// not tell of yet.
func (c *Controller) recordFailure(foo *v1alpha1.Foo, desired v1alpha1.FooStatus) {
	before := meta.FindStatusCondition(foo.Status.Conditions, v1alpha1.ConditionReady)
	ready := meta.FindStatusCondition(desired.Conditions, v1alpha1.ConditionReady)
	if ready.Reason != reasonNameTaken && ready.Reason != reasonRejected {
		return
	}
	if before != nil && before.Reason == ready.Reason && before.Message == ready.Message {
		return
	}
	c.recorder.Eventf(foo, nil, corev1.EventTypeWarning, ready.Reason, "SyncDeployment",
		"%s", ready.Message)
}
