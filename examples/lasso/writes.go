package main

import (
	"context"
	"errors"
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

	"example.com/sample-controller/examples/internal/meaning"
	"example.com/sample-controller/internal/patch"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// createDeployment creates the Deployment of foo. A Create cannot take over somebody else's object.
func (c *Controller) createDeployment(ctx context.Context, foo *v1alpha1.Foo) error {
	key := cache.MetaObjectToName(foo)
	if foo.Status.ObservedGeneration != 0 || c.deploymentWrites.HasWritten(key) { // not the first one
		if changed, err := c.hasChanged(ctx, foo); changed || err != nil {
			return err // nil if the Foo has changed: the event of that is on the way
		}
		// A Create that ends with AlreadyExists would count in a ResourceQuota for some minutes.
		if err := c.resolveAlreadyExists(ctx, foo); !patch.IsGone(err) {
			return err
		}
	}
	created := &appsv1.Deployment{}
	_, err := patch.Try(c.repairs, foo, "", blockedRetryDelay, func() (*appsv1.Deployment, error) {
		return created, c.deployments.Client().Create(ctx, foo.Namespace, meaning.NewDeployment(foo),
			created, metav1.CreateOptions{FieldManager: controllerName})
	})
	if apierrors.IsAlreadyExists(err) && !patch.IsRefusal(err) {
		c.deploymentWrites.WroteAt(key, "") // so the next sync asks first
		return c.resolveAlreadyExists(ctx, foo)
	}
	if err != nil {
		return c.handleWriteError(ctx, foo, nil, fmt.Errorf("creating Deployment: %w", err))
	}
	c.repairs.Created(key, foo, created, meaning.WithOwnedFields(created, foo))
	c.recordWrite(foo, created)
	c.recorder.Eventf(foo, created, corev1.EventTypeNormal, "DeploymentCreated",
		"CreateDeployment", "Created Deployment %q", created.Name)
	return nil
}

// hasChanged asks the API server whether foo is no longer what the cache shows: it has changed, or is
// deleted. The garbage collector deletes the Deployment of a deleted Foo, and the watch of
// Deployments may show that first.
func (c *Controller) hasChanged(ctx context.Context, foo *v1alpha1.Foo) (bool, error) {
	live := &v1alpha1.Foo{}
	err := c.foos.Client().Get(ctx, foo.Namespace, foo.Name, live, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("asking whether the Foo has changed: %w", err)
	}
	return live.UID != foo.UID || live.Generation != foo.Generation ||
		live.DeletionTimestamp != nil, nil
}

// resolveAlreadyExists handles a Deployment that the cache does not show, because it lacks the label
// that the cache selects by. If there is none, the error is NotFound.
func (c *Controller) resolveAlreadyExists(ctx context.Context, foo *v1alpha1.Foo) error {
	observed := &appsv1.Deployment{}
	err := c.deployments.Client().Get(
		ctx, foo.Namespace, foo.Spec.DeploymentName, observed, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading Deployment that may exist: %w", err)
	}
	if !metav1.IsControlledBy(observed, foo) {
		c.foos.EnqueueAfter(foo.Namespace, foo.Name, blockedRetryDelay)
		return c.updateStatus(ctx, foo, meaning.DesiredStatus(foo, nil, meaning.NameTaken(observed)))
	}
	if observed.Labels[meaning.ManagedByLabel] == controllerName {
		c.recordWrite(foo, observed) // the cache will show it
		return nil
	}
	return c.repairDeployment(ctx, foo, observed)
}

// repairDeployment makes the observed Deployment what foo asks for, and then deletes those of former
// names. If repairs do not last, the next one waits, and the status says so.
func (c *Controller) repairDeployment(
	ctx context.Context, foo *v1alpha1.Foo, observed *appsv1.Deployment,
) error {
	desired, live := meaning.WithOwnedFields(observed, foo), &appsv1.Deployment{}
	judgment, err := c.repairs.Judge(cache.MetaObjectToName(foo), foo, observed, desired,
		func() (patch.Object, error) {
			return live, c.deployments.Client().Get(
				ctx, foo.Namespace, observed.Name, live, metav1.GetOptions{})
		})
	if err != nil {
		return err
	}
	if judgment.Outcome == patch.Repair {
		return c.updateDeployment(ctx, foo, observed, desired)
	}
	if judgment.After > 0 {
		c.foos.EnqueueAfter(foo.Namespace, foo.Name, judgment.After)
	}
	conditions := meaning.JudgedConditions(foo, observed, judgment)
	if conditions == nil {
		return nil
	}
	status := meaning.DesiredStatus(foo, observed, conditions...)
	if meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReady) {
		err = c.deleteOtherDeployments(ctx, foo)
	}
	return errors.Join(err, c.updateStatus(ctx, foo, status))
}

// updateDeployment changes the observed Deployment to desired. It sends only the difference, so
// that fields that this program does not know are kept. The API server refuses the write if
// somebody else wrote in between.
func (c *Controller) updateDeployment(
	ctx context.Context, foo *v1alpha1.Foo, observed, desired *appsv1.Deployment,
) error {
	kind, difference, err := patch.Between(observed, desired)
	if err != nil {
		return err
	}
	updated := &appsv1.Deployment{}
	_, err = patch.Try(c.repairs, foo, observed.UID, blockedRetryDelay,
		func() (*appsv1.Deployment, error) {
			return updated, c.deployments.Client().Patch(ctx, foo.Namespace, desired.Name, kind,
				difference, updated, metav1.PatchOptions{FieldManager: controllerName})
		})
	if err != nil {
		return c.handleWriteError(ctx, foo, desired, fmt.Errorf("updating Deployment: %w", err))
	}
	key := cache.MetaObjectToName(foo)
	if !c.repairs.Sent(key, foo, updated, meaning.WithOwnedFields(updated, foo)) {
		c.foos.EnqueueKey(key.String()) // it has changed nothing
		return nil
	}
	c.recordWrite(foo, updated)
	c.recorder.Eventf(foo, updated, corev1.EventTypeNormal, "DeploymentUpdated",
		"UpdateDeployment", "Updated Deployment %q", updated.Name)
	return nil
}

// recordWrite makes the next sync of foo wait until the cache shows the write. It also makes sure
// that there is a next sync, even if the event of the write never comes.
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
		// Anybody can write the UID of any Foo into an owner reference, also in another namespace.
		if deployment.Namespace != foo.Namespace ||
			deployment.Name == foo.Spec.DeploymentName || deployment.DeletionTimestamp != nil {
			continue
		}
		if replaced, err := c.isReplaced(ctx, foo); !replaced || err != nil {
			return err // nil if the caches are behind: the events are on the way
		}
		err := c.deployments.Client().Delete(ctx, foo.Namespace, deployment.Name, metav1.DeleteOptions{
			// Only this object, and only if it is unchanged: then the Foo still owns it.
			Preconditions: &metav1.Preconditions{
				UID: &deployment.UID, ResourceVersion: &deployment.ResourceVersion,
			},
			PropagationPolicy: new(metav1.DeletePropagationBackground),
		})
		if patch.IsGone(err) {
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

// isReplaced asks the API server whether foo is still what the cache shows, and whether its
// Deployment is available. A deletion cannot be undone, and the caches may be behind.
func (c *Controller) isReplaced(ctx context.Context, foo *v1alpha1.Foo) (bool, error) {
	if changed, err := c.hasChanged(ctx, foo); changed || err != nil {
		return false, err
	}
	named := &appsv1.Deployment{}
	err := c.deployments.Client().Get(
		ctx, foo.Namespace, foo.Spec.DeploymentName, named, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading Deployment before the former one is deleted: %w", err)
	}
	return metav1.IsControlledBy(named, foo) && meaning.RolledOut(named), nil
}

// handleWriteError handles the error of a change of deployment, or of a Create if that is nil. It
// reports a refusal and retries slowly. It ignores what is gone. Lasso retries the rest.
func (c *Controller) handleWriteError(
	ctx context.Context, foo *v1alpha1.Foo, deployment *appsv1.Deployment, err error,
) error {
	switch {
	case patch.IsRefusal(err):
		c.foos.EnqueueAfter(foo.Namespace, foo.Name, blockedRetryDelay)
		ready := meaning.NotReady(meaning.ReasonRejected, err.Error())
		return c.updateStatus(ctx, foo, meaning.DesiredStatus(foo, deployment, ready))
	case deployment != nil && apierrors.IsNotFound(err):
		// Deleted in between. If the cache did not show it, no event tells of the deletion.
		c.foos.EnqueueAfter(foo.Namespace, foo.Name, staleRetryDelay)
		return nil
	case apierrors.IsNotFound(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil // the namespace goes, and the Foo with it
	default:
		return err
	}
}

// syncStatusOnly syncs a Foo that is being deleted. It creates and repairs nothing: the Deployment
// is deleted with the Foo, or stays with --cascade=orphan. But a finalizer may hold the Foo for a
// long time, so its status must stay true.
func (c *Controller) syncStatusOnly(ctx context.Context, foo *v1alpha1.Foo) error {
	observed, err := c.deploymentLister.Deployments(foo.Namespace).Get(foo.Spec.DeploymentName)
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	// If there is no Deployment, observed is nil.
	return c.updateStatus(ctx, foo, meaning.TerminatingStatus(foo, observed))
}

// updateStatus writes status to foo if it differs. Because of the resourceVersion of foo, the API
// server refuses a status that was computed from an older Foo, or from another one of that name.
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
	if patch.IsGone(err) {
		return nil // deleted; the event of that is on the way
	}
	if err != nil {
		return fmt.Errorf("updating status: %w", err)
	}
	c.fooWrites.WroteAt(cache.MetaObjectToName(foo), updated.ResourceVersion)
	c.recordFailure(foo, status)
	return nil
}

// recordFailure records a Warning Event if status reports a failure that the status of foo does not
// report yet.
func (c *Controller) recordFailure(foo *v1alpha1.Foo, status v1alpha1.FooStatus) {
	before := meta.FindStatusCondition(foo.Status.Conditions, v1alpha1.ConditionReady)
	ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
	if !slices.Contains(meaning.Failures, ready.Reason) {
		return
	}
	if before == nil || before.Reason != ready.Reason || before.Message != ready.Message {
		c.recorder.Eventf(foo, nil, corev1.EventTypeWarning, ready.Reason, "SyncDeployment",
			"%s", ready.Message)
	}
}
