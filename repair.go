package main

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/internal/patch"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// repairDeployment makes the observed Deployment what foo asks for, and then deletes those of former
// names. If repairs do not last, the next one waits, and the status says so.
func (c *Controller) repairDeployment(
	ctx context.Context, foo *v1alpha1.Foo, observed *appsv1.Deployment,
) (*v1alpha1.FooStatus, error) {
	key, desired := cache.MetaObjectToName(foo), withOwnedFields(observed, foo)
	status := desiredStatus(foo, observed, readyCondition(observed))
	if equality.Semantic.DeepEqual(observed, desired) {
		if rest, _ := c.repairs.Held(key, foo); rest > 0 {
			c.enqueueFooAfter(ctx, key, rest, "the last repair may not last")
			status.Conditions = foo.Status.Conditions
		}
	} else {
		delay, outcome := c.repairs.Delay(key, foo, observed, desired)
		if delay == 0 {
			return c.updateDeployment(ctx, foo, observed, desired)
		}
		c.enqueueFooAfter(ctx, key, delay, "the last repair did not last")
		if outcome == patch.Repaired {
			return nil, nil
		}
		overridden, err := c.overridden(ctx, key, outcome, observed, desired)
		if err != nil {
			return nil, err
		}
		status = overriddenStatus(foo, observed, overridden)
	}
	if meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReady) {
		return &status, c.deleteOtherDeployments(ctx, foo)
	}
	return &status, nil
}

// overridden returns the condition that names the fields of a Deployment which repairs do not change
// for long. It asks the API server who writes them, because the informer drops the managedFields.
func (c *Controller) overridden(
	ctx context.Context, key cache.ObjectName, outcome patch.Outcome,
	observed, desired *appsv1.Deployment,
) (metav1.Condition, error) {
	if outcome == patch.NotKept {
		return notKept(observed, desired), nil
	}
	fields := patch.Fields(observed, desired)
	writers, err := c.repairs.Report(key, func() (string, error) {
		live, err := c.kubeClient.AppsV1().Deployments(observed.Namespace).Get(
			ctx, observed.Name, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return "", fmt.Errorf("asking who changes the Deployment: %w", err)
		}
		return patch.Writers(live, fields), nil
	})
	return contested(observed, patch.Names(fields), writers), err
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

// overriddenStatus returns the status of foo, whose Deployment has other values than the controller
// has sent. If admission has set them, the Foo is as ready as its Deployment: the administrators of
// the cluster decide where images come from. But the count is what the Foo asks for, and without the
// label the controller does not see the Deployment. Another writer is a failure that people have to
// end.
func overriddenStatus(
	foo *v1alpha1.Foo, deployment *appsv1.Deployment, overridden metav1.Condition,
) v1alpha1.FooStatus {
	ready := readyCondition(deployment)
	if overridden.Reason == reasonContested ||
		desiredReplicas(deployment.Spec.Replicas) != desiredReplicas(foo.Spec.Replicas) ||
		deployment.Labels[managedByLabel] != controllerName {
		ready = notReady(overridden.Reason, overridden.Message)
	}
	status := desiredStatus(foo, deployment, ready)
	overridden.ObservedGeneration = foo.Generation
	if before := meta.FindStatusCondition(
		foo.Status.Conditions, v1alpha1.ConditionOverridden); before != nil {
		overridden.LastTransitionTime = before.LastTransitionTime
	}
	meta.SetStatusCondition(&status.Conditions, overridden)
	return status
}

// notKept returns the Overridden condition if the API server stores nothing of a repair.
func notKept(observed, desired *appsv1.Deployment) metav1.Condition {
	return overridden(reasonNotKept, fmt.Sprintf("Deployment %q: the API server does not keep what the "+
		"controller sends as %s", observed.Name, patch.Names(patch.Fields(observed, desired))))
}

// contested returns the Overridden condition if others undo each repair of these fields.
func contested(observed *appsv1.Deployment, fields, writers string) metav1.Condition {
	return overridden(reasonContested, fmt.Sprintf("Deployment %q: %s sets back each repair of %s",
		observed.Name, writers, fields))
}

func overridden(reason, message string) metav1.Condition {
	return metav1.Condition{
		Type: v1alpha1.ConditionOverridden, Status: metav1.ConditionTrue,
		Reason: reason, Message: clean(message),
	}
}
