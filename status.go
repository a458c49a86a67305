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

// observation is what a sync has found out about the Deployment of a Foo. The zero observation says
// that there is nothing to report yet: an event will bring the key back.
type observation struct {
	deployment *appsv1.Deployment // that of the Foo, or nil
	conditions []metav1.Condition // Ready, and perhaps Overridden
	retryAfter time.Duration      // when to look again, if there is a reason to
	because    string             // that reason; empty if an event will bring the key back
}

// syncDeployment takes one step from the state in the caches towards what foo asks for, and returns
// the status that foo should have, even if a deletion fails. It is nil if there is nothing to say.
func (c *Controller) syncDeployment(
	ctx context.Context, foo *v1alpha1.Foo,
) (*v1alpha1.FooStatus, error) {
	observed, err := c.deployments.Deployments(foo.Namespace).Get(foo.Spec.DeploymentName)
	if apierrors.IsNotFound(err) {
		observed = nil
	} else if err != nil {
		return nil, err
	}
	var result observation
	switch {
	case foo.DeletionTimestamp != nil:
		// Create and repair nothing: the Deployment is deleted with the Foo, or stays with
		// --cascade=orphan. But a finalizer may hold the Foo for long: its status must stay true.
		return new(terminatingStatus(foo, observed)), nil
	case observed == nil:
		result, err = c.createDeployment(ctx, foo)
	case !metav1.IsControlledBy(observed, foo):
		result.conditions = []metav1.Condition{nameTaken(observed)}
	case observed.DeletionTimestamp != nil:
		result.deployment = observed
		result.conditions = []metav1.Condition{readyCondition(observed)}
	default:
		result, err = c.repairDeployment(ctx, foo, observed)
	}
	if err != nil {
		return nil, err
	}
	if result.because != "" {
		c.enqueueFooAfter(ctx, cache.MetaObjectToName(foo), result.retryAfter, result.because)
	}
	if result.conditions == nil {
		return nil, nil
	}
	status := desiredStatus(foo, result.deployment, result.conditions...)
	if meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReady) {
		return &status, c.deleteOtherDeployments(ctx, foo)
	}
	return &status, nil
}

// enqueueFooAfter puts the key of a Foo on the queue later: there may be no event that does it.
func (c *Controller) enqueueFooAfter(
	ctx context.Context, key cache.ObjectName, delay time.Duration, because string,
) {
	klog.FromContext(ctx).V(5).Info("Queueing Foo again", "after", delay, "because", because)
	c.queue.AddAfter(key, delay)
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
	if apierrors.IsNotFound(err) && !patch.IsRefusal(err) {
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
