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

	"example.com/sample-controller/examples/internal/meaning"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// createDeployment creates the Deployment of foo. Create cannot take over what somebody else made.
func (c *Controller) createDeployment(ctx context.Context, foo *v1alpha1.Foo) error {
	if err := c.checkNotGone(ctx, foo); err != nil {
		return err
	}
	created := &appsv1.Deployment{}
	err := c.deployments.Client().Create(ctx, foo.Namespace, meaning.NewDeployment(foo), created,
		metav1.CreateOptions{FieldManager: controllerName})
	if apierrors.IsAlreadyExists(err) {
		return c.resolveAlreadyExists(ctx, foo)
	}
	if err != nil {
		return c.handleWriteError(ctx, foo, nil, fmt.Errorf("creating Deployment: %w", err))
	}
	c.recordWrite(foo, created)
	c.recorder.Eventf(foo, created, corev1.EventTypeNormal, "DeploymentCreated",
		"CreateDeployment", "Created Deployment %q", created.Name)
	return nil
}

// checkNotGone asks the API server, for a Foo that had a Deployment before, whether the Foo is
// still there: the Deployment may be gone because the Foo is, and its watch may tell so first.
func (c *Controller) checkNotGone(ctx context.Context, foo *v1alpha1.Foo) error {
	key := cache.MetaObjectToName(foo)
	if foo.Status.ObservedGeneration == 0 && !c.deploymentWrites.HasWritten(key) {
		return nil
	}
	live := &v1alpha1.Foo{}
	err := c.foos.Client().Get(ctx, foo.Namespace, foo.Name, live, metav1.GetOptions{})
	gone := err == nil && (live.UID != foo.UID || live.DeletionTimestamp != nil)
	if apierrors.IsNotFound(err) || gone {
		return errGone
	}
	return err
}

// resolveAlreadyExists is for a Deployment that the API server has and the cache does not show:
// one without the label that the cache selects by.
func (c *Controller) resolveAlreadyExists(ctx context.Context, foo *v1alpha1.Foo) error {
	observed := &appsv1.Deployment{}
	err := c.deployments.Client().Get(
		ctx, foo.Namespace, foo.Spec.DeploymentName, observed, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading Deployment that exists already: %w", err)
	}
	if !metav1.IsControlledBy(observed, foo) {
		c.foos.EnqueueAfter(foo.Namespace, foo.Name, blockedRetryDelay)
		return c.reportNameTaken(ctx, foo, observed)
	}
	meaning.SetOwnedFields(observed, foo)
	return c.updateDeployment(ctx, foo, observed)
}

// updateDeployment writes desired, a changed copy of what was read. Its resourceVersion makes the
// API server refuse the write if somebody else wrote since.
func (c *Controller) updateDeployment(
	ctx context.Context, foo *v1alpha1.Foo, desired *appsv1.Deployment,
) error {
	updated := &appsv1.Deployment{}
	err := c.deployments.Client().Update(ctx, foo.Namespace, desired, updated,
		metav1.UpdateOptions{FieldManager: controllerName})
	if err != nil {
		return c.handleWriteError(ctx, foo, desired, fmt.Errorf("updating Deployment: %w", err))
	}
	c.recordWrite(foo, updated)
	c.recorder.Eventf(foo, updated, corev1.EventTypeNormal, "DeploymentUpdated",
		"UpdateDeployment", "Updated Deployment %q", updated.Name)
	return nil
}

// recordWrite makes the next sync of foo wait until the cache shows that write, and makes sure that
// there is a next sync, also if no event ever tells of the write.
func (c *Controller) recordWrite(foo *v1alpha1.Foo, written *appsv1.Deployment) {
	key := cache.MetaObjectToName(foo)
	c.deploymentWrites.WroteAt(key, written.ResourceVersion)
	time.AfterFunc(staleRetryDelay, func() {
		if c.deploymentWrites.Pending(key) {
			c.foos.EnqueueKey(key.String())
		}
	})
}

// deleteOtherDeployments deletes the Deployments that foo owned under other names.
func (c *Controller) deleteOtherDeployments(ctx context.Context, foo *v1alpha1.Foo) error {
	owned, err := c.deploymentsByUID.ByIndex(controllerUIDIndex, string(foo.UID))
	if err != nil {
		return fmt.Errorf("finding the Deployments of the Foo: %w", err)
	}
	for _, object := range owned {
		deployment := object.(*appsv1.Deployment)
		if deployment.Name == foo.Spec.DeploymentName || deployment.DeletionTimestamp != nil {
			continue
		}
		err := c.deployments.Client().Delete(ctx, foo.Namespace, deployment.Name, metav1.DeleteOptions{
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
		c.recorder.Eventf(foo, deployment, corev1.EventTypeNormal, "DeploymentDeleted",
			"DeleteDeployment", "Deleted Deployment %q, now replaced by %q",
			deployment.Name, foo.Spec.DeploymentName)
	}
	return nil
}

// handleWriteError tells apart the errors of a write to deployment, nil if it was to be created. A
// refusal is reported and retried slowly; what is gone is ignored; the rest Lasso retries.
func (c *Controller) handleWriteError(
	ctx context.Context, foo *v1alpha1.Foo, deployment *appsv1.Deployment, err error,
) error {
	switch {
	case deployment != nil && apierrors.IsNotFound(err):
		// Deleted in between. Should the cache not have shown it, no event tells of that.
		c.foos.EnqueueAfter(foo.Namespace, foo.Name, staleRetryDelay)
		return nil
	case apierrors.IsNotFound(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return errGone
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err):
		c.foos.EnqueueAfter(foo.Namespace, foo.Name, blockedRetryDelay)
		ready := meaning.NotReady(meaning.ReasonRejected, err.Error())
		return c.updateStatus(ctx, foo, meaning.DesiredStatus(foo, deployment, ready))
	default:
		return err
	}
}

// reportNameTaken reports that the Deployment that foo names is not its own.
func (c *Controller) reportNameTaken(
	ctx context.Context, foo *v1alpha1.Foo, taken *appsv1.Deployment,
) error {
	return c.updateStatus(ctx, foo, meaning.DesiredStatus(foo, nil, meaning.NameTaken(taken)))
}

// syncStatusOnly is the sync of a Foo that is being deleted. Its Deployment goes with it, or stays
// with --cascade=orphan, so nothing is made and nothing repaired. But somebody's finalizer may hold
// the Foo for long: what its status says stays true.
func (c *Controller) syncStatusOnly(ctx context.Context, foo *v1alpha1.Foo) error {
	observed, err := c.deploymentLister.Deployments(foo.Namespace).Get(foo.Spec.DeploymentName)
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	// If there is none, observed is nil.
	return c.updateStatus(ctx, foo, meaning.TerminatingStatus(foo, observed))
}

// updateStatus writes the status of foo if it is to change. The resourceVersion of foo makes the
// API server refuse what was computed from an older Foo, or from another one of that name.
func (c *Controller) updateStatus(
	ctx context.Context, foo *v1alpha1.Foo, status v1alpha1.FooStatus,
) error {
	if equality.Semantic.DeepEqual(foo.Status, status) {
		return nil
	}
	desired, updated := foo.DeepCopy(), &v1alpha1.Foo{}
	desired.Status = status
	err := c.foos.Client().UpdateStatus(ctx, foo.Namespace, desired, updated,
		metav1.UpdateOptions{FieldManager: controllerName})
	if apierrors.IsNotFound(err) {
		return errGone
	}
	if err != nil {
		return fmt.Errorf("updating status: %w", err)
	}
	c.fooWrites.WroteAt(cache.MetaObjectToName(foo), updated.ResourceVersion)
	c.recordFailure(foo, status)
	return nil
}

// recordFailure records a Warning event if status tells of a failure that the status of foo does
// not tell of yet.
func (c *Controller) recordFailure(foo *v1alpha1.Foo, status v1alpha1.FooStatus) {
	before := meta.FindStatusCondition(foo.Status.Conditions, v1alpha1.ConditionReady)
	ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
	if ready.Reason != meaning.ReasonNameTaken && ready.Reason != meaning.ReasonRejected {
		return
	}
	if before == nil || before.Reason != ready.Reason || before.Message != ready.Message {
		c.recorder.Eventf(foo, nil, corev1.EventTypeWarning, ready.Reason, "SyncDeployment",
			"%s", ready.Message)
	}
}
