package main

import (
	"context"
	"fmt"
	"slices"
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

const (
	// blockedRetryDelay is for obstacles that may go away without an event: the API server refuses
	// the Deployment, or the name belongs to a Deployment that the informer does not select.
	blockedRetryDelay = 15 * time.Second
	// staleRetryDelay is how long a key waits if the cache may not show the last write yet. The
	// event of a write may never come: an object that is created and deleted while the watch is
	// down leaves no trace in the informer.
	staleRetryDelay = time.Second
)

// createDeployment creates the Deployment of foo. It uses Create and not Apply, because a Create
// cannot take over an object that somebody else has created.
func (c *Controller) createDeployment(
	ctx context.Context, foo *v1alpha1.Foo,
) (*v1alpha1.FooStatus, error) {
	key := cache.MetaObjectToName(foo)
	if foo.Status.ObservedGeneration != 0 || c.deploymentWrites.HasWritten(key) {
		// It is not the first one, so something has happened: perhaps more than the cache shows.
		if changed, err := c.hasChanged(ctx, foo); changed || err != nil {
			return nil, err // the event of the change is on the way
		}
	}
	created, err := c.kubeClient.AppsV1().Deployments(foo.Namespace).Create(
		ctx, newDeployment(foo), metav1.CreateOptions{FieldManager: controllerName})
	if apierrors.IsAlreadyExists(err) {
		return c.resolveAlreadyExists(ctx, foo)
	}
	if err != nil {
		return c.handleWriteError(ctx, foo, nil, fmt.Errorf("creating Deployment: %w", err))
	}
	c.repairs.Created(key, foo, created, withOwnedFields(created, foo))
	c.recordWrite(ctx, foo, created)
	c.wrote(ctx, foo, created, "Create", "Created Deployment", "")
	return nil, nil
}

// hasChanged asks the API server whether foo has changed or is deleted: the cache may be behind.
// The garbage collector deletes the Deployment of a deleted Foo, and the watch of Deployments may
// show that first. Without hasChanged, the controller would create it again until the watch of Foos
// catches up.
func (c *Controller) hasChanged(ctx context.Context, foo *v1alpha1.Foo) (bool, error) {
	live, err := c.fooClient.SamplecontrollerV1alpha1().Foos(foo.Namespace).Get(
		ctx, foo.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("asking whether the Foo has changed: %w", err)
	}
	return live.UID != foo.UID || live.Generation != foo.Generation ||
		live.DeletionTimestamp != nil, nil
}

// resolveAlreadyExists handles a Deployment that exists although the informer does not show it: the
// informer is behind, or the Deployment lacks the label that the informer selects by.
func (c *Controller) resolveAlreadyExists(
	ctx context.Context, foo *v1alpha1.Foo,
) (*v1alpha1.FooStatus, error) {
	observed, err := c.kubeClient.AppsV1().Deployments(foo.Namespace).Get(
		ctx, foo.Spec.DeploymentName, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading Deployment that exists already: %w", err)
	}
	if !metav1.IsControlledBy(observed, foo) {
		c.enqueueFooAfter(ctx, cache.MetaObjectToName(foo), blockedRetryDelay,
			"the Deployment belongs to somebody else")
		return new(desiredStatus(foo, nil, nameTaken(observed))), nil
	}
	if observed.Labels[managedByLabel] == controllerName {
		c.recordWrite(ctx, foo, observed) // of another process: the informer will show it
		return nil, nil
	}
	// It is ours, but somebody has removed the label: put it back.
	return c.repairDeployment(ctx, foo, observed)
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
	key := cache.MetaObjectToName(foo)
	if !c.repairs.Sent(key, foo, observed, updated, withOwnedFields(updated, foo)) {
		c.enqueueFooAfter(ctx, key, 0, "the repair has changed nothing")
		return nil, nil
	}
	c.recordWrite(ctx, foo, updated)
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
		if replaced, err := c.isReplaced(ctx, foo); !replaced || err != nil {
			return err // nil if the caches are behind: the events are on the way
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

// isReplaced asks the API server whether foo is still what the cache shows, and whether its
// Deployment is available. A deletion cannot be undone, and the caches may be behind: after a
// restart, they may even show an older state than the last process has seen.
func (c *Controller) isReplaced(ctx context.Context, foo *v1alpha1.Foo) (bool, error) {
	if changed, err := c.hasChanged(ctx, foo); changed || err != nil {
		return false, err
	}
	named, err := c.kubeClient.AppsV1().Deployments(foo.Namespace).Get(
		ctx, foo.Spec.DeploymentName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading Deployment before the former one is deleted: %w", err)
	}
	return metav1.IsControlledBy(named, foo) && rolledOut(named), nil
}

// recordWrite makes the next sync of foo wait until the informer shows the write. It also makes
// sure that there is a next sync, even if the event of the write never comes.
func (c *Controller) recordWrite(
	ctx context.Context, foo *v1alpha1.Foo, written *appsv1.Deployment,
) {
	key := cache.MetaObjectToName(foo)
	c.deploymentWrites.WroteAt(key, written.ResourceVersion)
	time.AfterFunc(staleRetryDelay, func() {
		if c.deploymentWrites.Pending(key) {
			klog.FromContext(ctx).V(5).Info("Queueing Foo again",
				"because", "no sync has seen the last write")
			c.queue.Add(key)
		}
	})
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
	case deployment != nil && apierrors.IsNotFound(err):
		// Deleted in between. If the informer did not show it, no event tells of the deletion.
		c.enqueueFooAfter(ctx, cache.MetaObjectToName(foo), staleRetryDelay,
			"the Deployment was deleted in between")
		return nil, nil
	case apierrors.IsNotFound(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil, nil // the namespace goes, and the Foo with it
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
	updated, err := c.fooClient.SamplecontrollerV1alpha1().Foos(foo.Namespace).UpdateStatus(
		ctx, updated, metav1.UpdateOptions{FieldManager: controllerName})
	if apierrors.IsNotFound(err) {
		return nil // deleted; the event of that is on the way
	}
	if err != nil {
		return fmt.Errorf("updating status: %w", err)
	}
	c.fooWrites.WroteAt(cache.MetaObjectToName(foo), updated.ResourceVersion)
	c.recordFailure(foo, desired)
	return nil
}

// recordFailure records a Warning Event if desired reports a failure that the status of foo does
// not report yet.
func (c *Controller) recordFailure(foo *v1alpha1.Foo, desired v1alpha1.FooStatus) {
	before := meta.FindStatusCondition(foo.Status.Conditions, v1alpha1.ConditionReady)
	ready := meta.FindStatusCondition(desired.Conditions, v1alpha1.ConditionReady)
	if !slices.Contains(failures, ready.Reason) {
		return
	}
	if before != nil && before.Reason == ready.Reason && before.Message == ready.Message {
		return
	}
	c.recorder.Eventf(foo, nil, corev1.EventTypeWarning, ready.Reason, "SyncDeployment",
		"%s", ready.Message)
}
