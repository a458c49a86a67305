package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"example.com/sample-controller/internal/patch"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// blockedRetryDelay is for refused writes: no event tells when the API server would accept them.
const blockedRetryDelay = 15 * time.Second

// createDeployment creates the Deployment of foo. It uses Create and not Apply, because a Create
// cannot take over an object that somebody else has created.
func (c *Controller) createDeployment(
	ctx context.Context, foo *v1alpha1.Foo,
) (*v1alpha1.FooStatus, error) {
	created, err := c.kubeClient.AppsV1().Deployments(foo.Namespace).Create(
		ctx, newDeployment(foo), metav1.CreateOptions{FieldManager: controllerName})
	if err != nil {
		return c.handleWriteError(ctx, foo, nil, fmt.Errorf("creating Deployment: %w", err))
	}
	c.wrote(ctx, foo, created, "Create", "Created Deployment", "")
	return nil, nil
}

// updateDeployment makes desired of the observed Deployment. It sends only what differs, so that
// fields stay which this program does not know. The API server refuses the write if somebody else
// wrote in between.
func (c *Controller) updateDeployment(
	ctx context.Context, foo *v1alpha1.Foo, observed, desired *appsv1.Deployment,
) (*v1alpha1.FooStatus, error) {
	updated, err := patch.Send(ctx, c.kubeClient.AppsV1().Deployments(foo.Namespace),
		observed, desired, controllerName)
	if err != nil {
		return c.handleWriteError(ctx, foo, desired, fmt.Errorf("updating Deployment: %w", err))
	}
	c.wrote(ctx, foo, updated, "Update", "Updated Deployment", "")
	return nil, nil
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

// enqueueFooAfter puts the key of a Foo on the queue later: there may be no event that does it.
func (c *Controller) enqueueFooAfter(
	ctx context.Context, key cache.ObjectName, delay time.Duration, because string,
) {
	klog.FromContext(ctx).V(5).Info("Queueing Foo again", "after", delay, "because", because)
	c.queue.AddAfter(key, delay)
}

// handleWriteError handles the error of a change of deployment, or of a Create if that is nil. If
// the API server would refuse the same write again, it returns a status that says so, and retries
// slowly. It returns nil if an object is gone or terminating, and any other error for a retry.
func (c *Controller) handleWriteError(
	ctx context.Context, foo *v1alpha1.Foo, deployment *appsv1.Deployment, err error,
) (*v1alpha1.FooStatus, error) {
	switch {
	case apierrors.IsNotFound(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil, nil // the event of the deletion brings the key back if the Foo stays
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err):
		c.enqueueFooAfter(ctx, cache.MetaObjectToName(foo), blockedRetryDelay,
			"the API server refuses the Deployment")
		return new(desiredStatus(foo, deployment, notReady(reasonRejected, err.Error()))), nil
	default:
		return nil, err
	}
}

// updateStatus writes the status of foo if it differs from desired, and an Event about a new
// failure. The API server changes only the status, and refuses one that was computed from an older
// Foo (resourceVersion) or from another Foo of the same name (UID).
func (c *Controller) updateStatus(
	ctx context.Context, foo *v1alpha1.Foo, desired v1alpha1.FooStatus,
) error {
	if equality.Semantic.DeepEqual(foo.Status, desired) {
		return nil
	}
	updated := foo.DeepCopy() // foo belongs to the cache
	updated.Status = desired
	_, err := c.fooClient.SamplecontrollerV1alpha1().Foos(foo.Namespace).UpdateStatus(
		ctx, updated, metav1.UpdateOptions{FieldManager: controllerName})
	if apierrors.IsNotFound(err) {
		return nil // deleted; the event of that is on the way
	}
	if err != nil {
		return fmt.Errorf("updating status: %w", err)
	}
	c.recordFailure(foo, desired)
	return nil
}

// recordFailure records a Warning Event if desired reports a failure that the status of foo does
// not report yet.
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
