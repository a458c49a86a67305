package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"example.com/sample-controller/internal/patch"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// createDeployment creates the Deployment of foo. A Create cannot take over somebody else's object.
func (c *Controller) createDeployment(
	ctx context.Context, foo *v1alpha1.Foo,
) (observation, error) {
	key := cache.MetaObjectToName(foo)
	if foo.Status.ObservedGeneration != 0 || c.deploymentWrites.HasWritten(key) {
		// This is not the first sync, so something has happened: perhaps more than the cache shows.
		if changed, err := c.hasChanged(ctx, foo); changed || err != nil {
			return observation{}, err // the event of the change is on the way
		}
		// A Create that ends with AlreadyExists would count in a ResourceQuota for some minutes.
		if result, err := c.resolveAlreadyExists(ctx, foo); !patch.IsGone(err) {
			return result, err
		}
	}
	created, err := patch.Try(c.repairs, foo, "", blockedRetryDelay,
		func() (*appsv1.Deployment, error) {
			return c.kubeClient.AppsV1().Deployments(foo.Namespace).Create(
				ctx, newDeployment(foo), metav1.CreateOptions{FieldManager: controllerName})
		})
	if apierrors.IsAlreadyExists(err) && !patch.IsRefusal(err) {
		c.deploymentWrites.WroteAt(key, "") // so the next sync asks first
		return c.resolveAlreadyExists(ctx, foo)
	}
	if err != nil {
		return handleWriteError(nil, fmt.Errorf("creating Deployment: %w", err))
	}
	c.repairs.Created(key, foo, created, withOwnedFields(created, foo))
	c.recordWrite(ctx, foo, created)
	c.wrote(ctx, foo, created, "Create", "Created Deployment", "")
	return observation{}, nil
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

// resolveAlreadyExists handles a Deployment that the informer does not show: the informer is behind,
// or the Deployment lacks the label that it selects by. If there is none, the error is NotFound.
func (c *Controller) resolveAlreadyExists(
	ctx context.Context, foo *v1alpha1.Foo,
) (observation, error) {
	observed, err := c.kubeClient.AppsV1().Deployments(foo.Namespace).Get(
		ctx, foo.Spec.DeploymentName, metav1.GetOptions{})
	if err != nil {
		return observation{}, fmt.Errorf("reading Deployment that may exist: %w", err)
	}
	if !metav1.IsControlledBy(observed, foo) {
		return observation{
			conditions: []metav1.Condition{nameTaken(observed)},
			retryAfter: blockedRetryDelay, because: "the Deployment belongs to somebody else",
		}, nil
	}
	if observed.Labels[managedByLabel] == controllerName {
		c.recordWrite(ctx, foo, observed) // of another process: the informer will show it
		return observation{}, nil
	}
	// It is ours, but somebody has removed the label: put it back.
	return c.repairDeployment(ctx, foo, observed)
}

// repairDeployment makes the observed Deployment what foo asks for. If repairs do not last, the next
// one waits.
func (c *Controller) repairDeployment(
	ctx context.Context, foo *v1alpha1.Foo, observed *appsv1.Deployment,
) (observation, error) {
	desired := withOwnedFields(observed, foo)
	judgment, err := c.repairs.Judge(cache.MetaObjectToName(foo), foo, observed, desired,
		func() (patch.Object, error) {
			return c.kubeClient.AppsV1().Deployments(foo.Namespace).Get(
				ctx, observed.Name, metav1.GetOptions{})
		})
	if err != nil {
		return observation{}, err
	}
	if judgment.Outcome == patch.Repair {
		return c.updateDeployment(ctx, foo, observed, desired)
	}
	result := observation{
		deployment: observed, conditions: judgedConditions(foo, observed, judgment),
	}
	if judgment.After > 0 {
		result.retryAfter, result.because = judgment.After, "repairs do not last"
	}
	return result, nil
}

// updateDeployment changes the observed Deployment to desired. It sends only the difference, so
// that fields that this program does not know are kept. The API server refuses the write if
// somebody else wrote in between.
func (c *Controller) updateDeployment(
	ctx context.Context, foo *v1alpha1.Foo, observed, desired *appsv1.Deployment,
) (observation, error) {
	updated, err := patch.Try(c.repairs, foo, observed.UID, blockedRetryDelay,
		func() (*appsv1.Deployment, error) {
			return patch.Send(ctx, c.kubeClient.AppsV1().Deployments(foo.Namespace),
				observed, desired, controllerName)
		})
	if err != nil {
		return handleWriteError(desired, fmt.Errorf("updating Deployment: %w", err))
	}
	key := cache.MetaObjectToName(foo)
	if !c.repairs.Sent(key, foo, updated, withOwnedFields(updated, foo)) {
		return observation{because: "the repair has changed nothing"}, nil
	}
	c.recordWrite(ctx, foo, updated)
	c.wrote(ctx, foo, updated, "Update", "Updated Deployment", "")
	return observation{}, nil
}

// handleWriteError handles the error of a write. deployment is nil if the write was a Create. If
// the API server would refuse the same write again, the observation says so and asks for a slow
// retry. If the Deployment is gone, the observation asks for another sync soon. If the namespace is
// gone or terminating, the observation is empty. Any other error is returned, for a quick retry.
func handleWriteError(deployment *appsv1.Deployment, err error) (observation, error) {
	switch {
	case patch.IsRefusal(err):
		return observation{
			deployment: deployment,
			conditions: []metav1.Condition{notReady(reasonRejected, err.Error())},
			retryAfter: blockedRetryDelay, because: "the API server refuses the Deployment",
		}, nil
	case deployment != nil && apierrors.IsNotFound(err):
		// Deleted in between. If the informer did not show it, no event tells of the deletion.
		return observation{
			retryAfter: staleRetryDelay, because: "the Deployment was deleted in between",
		}, nil
	case apierrors.IsNotFound(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return observation{}, nil // the namespace goes, and the Foo with it
	default:
		return observation{}, err
	}
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
		if patch.IsGone(err) {
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
