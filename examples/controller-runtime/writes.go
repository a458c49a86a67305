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
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/sample-controller/examples/internal/meaning"
	"example.com/sample-controller/internal/patch"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// createDeployment creates the Deployment of foo. A Create cannot take over somebody else's object.
func (r *Reconciler) createDeployment(ctx context.Context, foo *v1alpha1.Foo) (ctrl.Result, error) {
	_, again := r.created.LoadOrStore(client.ObjectKeyFromObject(foo), nil)
	if again || foo.Status.ObservedGeneration != 0 { // it is not the first one
		if changed, err := r.hasChanged(ctx, foo); changed || err != nil {
			return ctrl.Result{}, err // nil if the Foo has changed: the event of that is on the way
		}
		// A Create that ends with AlreadyExists would count in a ResourceQuota for some minutes.
		if result, err := r.resolveAlreadyExists(ctx, foo); !patch.IsGone(err) {
			return result, err
		}
	}
	deployment := meaning.NewDeployment(foo)
	_, err := patch.Try(r.repairs, foo, "", blockedRetryDelay, func() (*appsv1.Deployment, error) {
		return deployment, r.Create(ctx, deployment) // fills deployment in with what the API server stored
	})
	if apierrors.IsAlreadyExists(err) && !patch.IsRefusal(err) {
		return r.resolveAlreadyExists(ctx, foo)
	}
	if err != nil {
		return r.handleWriteError(ctx, foo, nil, fmt.Errorf("creating Deployment: %w", err))
	}
	r.repairs.Created(cache.MetaObjectToName(foo), foo, deployment,
		meaning.WithOwnedFields(deployment, foo))
	r.recorder.Eventf(foo, deployment, corev1.EventTypeNormal, "DeploymentCreated",
		"CreateDeployment", "Created Deployment %q", deployment.Name)
	return ctrl.Result{RequeueAfter: writeRetryDelay}, nil
}

// hasChanged asks the API server whether foo is no longer what the cache shows: it has changed, or is
// deleted. The garbage collector deletes the Deployment of a deleted Foo, and the watch of
// Deployments may show that first.
func (r *Reconciler) hasChanged(ctx context.Context, foo *v1alpha1.Foo) (bool, error) {
	live := &v1alpha1.Foo{}
	err := r.live.Get(ctx, client.ObjectKeyFromObject(foo), live)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("asking whether the Foo has changed: %w", err)
	}
	return live.UID != foo.UID || live.Generation != foo.Generation ||
		live.DeletionTimestamp != nil, nil
}

// resolveAlreadyExists handles a Deployment that the Cache does not show: it lacks the label that the
// Cache selects by, or the Cache is behind. If there is none, the error is NotFound.
func (r *Reconciler) resolveAlreadyExists(
	ctx context.Context, foo *v1alpha1.Foo,
) (ctrl.Result, error) {
	observed := &appsv1.Deployment{}
	key := client.ObjectKey{Namespace: foo.Namespace, Name: foo.Spec.DeploymentName}
	if err := r.live.Get(ctx, key, observed); err != nil {
		return ctrl.Result{}, fmt.Errorf("reading Deployment that may exist: %w", err)
	}
	if !metav1.IsControlledBy(observed, foo) {
		status := meaning.DesiredStatus(foo, nil, meaning.NameTaken(observed))
		return ctrl.Result{RequeueAfter: blockedRetryDelay}, r.updateStatus(ctx, foo, status)
	}
	if equality.Semantic.DeepEqual(observed, meaning.WithOwnedFields(observed, foo)) {
		return ctrl.Result{RequeueAfter: writeRetryDelay}, nil
	}
	return r.repairDeployment(ctx, foo, observed)
}

// repairDeployment makes the observed Deployment what foo asks for, and then deletes those of former
// names. If repairs do not last, the next one waits, and the status says so.
func (r *Reconciler) repairDeployment(
	ctx context.Context, foo *v1alpha1.Foo, observed *appsv1.Deployment,
) (ctrl.Result, error) {
	desired, live := meaning.WithOwnedFields(observed, foo), &appsv1.Deployment{}
	judgment, err := r.repairs.Judge(cache.MetaObjectToName(foo), foo, observed, desired,
		func() (patch.Object, error) {
			return live, r.live.Get(ctx, client.ObjectKeyFromObject(observed), live)
		})
	if err != nil {
		return ctrl.Result{}, err
	}
	if judgment.Outcome == patch.Repair {
		return r.updateDeployment(ctx, foo, observed, desired)
	}
	result := ctrl.Result{RequeueAfter: judgment.After}
	conditions := meaning.JudgedConditions(foo, observed, judgment)
	if conditions == nil {
		return result, nil
	}
	status := meaning.DesiredStatus(foo, observed, conditions...)
	if meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReady) {
		err = r.deleteOtherDeployments(ctx, foo)
	}
	return result, errors.Join(err, r.updateStatus(ctx, foo, status))
}

// updateDeployment changes the observed Deployment to desired. It sends only the difference, so
// that fields that this program does not know are kept. The API server refuses the write if
// somebody else wrote in between.
func (r *Reconciler) updateDeployment(
	ctx context.Context, foo *v1alpha1.Foo, observed, desired *appsv1.Deployment,
) (ctrl.Result, error) {
	kind, difference, err := patch.Between(observed, desired)
	if err != nil {
		return ctrl.Result{}, err
	}
	_, err = patch.Try(r.repairs, foo, observed.UID, blockedRetryDelay,
		func() (*appsv1.Deployment, error) {
			return desired, r.Patch(ctx, desired, client.RawPatch(kind, difference))
		})
	if err != nil {
		return r.handleWriteError(ctx, foo, desired, fmt.Errorf("updating Deployment: %w", err))
	}
	// desired has become the answer.
	if !r.repairs.Sent(cache.MetaObjectToName(foo), foo, desired,
		meaning.WithOwnedFields(desired, foo)) {
		return ctrl.Result{RequeueAfter: time.Millisecond}, nil // it has changed nothing
	}
	r.recorder.Eventf(foo, desired, corev1.EventTypeNormal, "DeploymentUpdated",
		"UpdateDeployment", "Updated Deployment %q", desired.Name)
	return ctrl.Result{RequeueAfter: writeRetryDelay}, nil
}

// deleteOtherDeployments deletes the Deployments that foo owned under other names.
func (r *Reconciler) deleteOtherDeployments(ctx context.Context, foo *v1alpha1.Foo) error {
	var owned appsv1.DeploymentList
	// A consistent List would wait for the writes to all Deployments, even those of other Foos.
	err := r.List(ctx, &owned, client.InNamespace(foo.Namespace),
		client.MatchingFields{controllerUIDIndex: string(foo.UID)},
		client.DisableReadYourWritesConsistency)
	if err != nil {
		return fmt.Errorf("finding the Deployments of the Foo: %w", err)
	}
	for _, deployment := range owned.Items {
		if deployment.Name == foo.Spec.DeploymentName || deployment.DeletionTimestamp != nil {
			continue
		}
		if replaced, err := r.isReplaced(ctx, foo); !replaced || err != nil {
			return err // nil if the cache is behind: the events are on the way
		}
		err := r.Delete(ctx, &deployment,
			// Only this object, and only if it is unchanged: then the Foo still owns it.
			client.Preconditions{UID: &deployment.UID, ResourceVersion: &deployment.ResourceVersion},
			client.PropagationPolicy(metav1.DeletePropagationBackground))
		if patch.IsGone(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("deleting Deployment of the former name: %w", err)
		}
		r.recorder.Eventf(foo, &deployment, corev1.EventTypeNormal, "DeploymentDeleted",
			"DeleteDeployment", "Deleted Deployment %q, now replaced by %q",
			deployment.Name, foo.Spec.DeploymentName)
	}
	return nil
}

// isReplaced asks the API server whether foo is still what the cache shows, and whether its
// Deployment is available. A deletion cannot be undone, and the cache may be behind.
func (r *Reconciler) isReplaced(ctx context.Context, foo *v1alpha1.Foo) (bool, error) {
	if changed, err := r.hasChanged(ctx, foo); changed || err != nil {
		return false, err
	}
	named := &appsv1.Deployment{}
	key := client.ObjectKey{Namespace: foo.Namespace, Name: foo.Spec.DeploymentName}
	if err := r.live.Get(ctx, key, named); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return metav1.IsControlledBy(named, foo) && meaning.RolledOut(named), nil
}

// handleWriteError handles the error of a change of deployment, or of a Create if that is nil. If
// the API server would refuse the same write again, it reports that in the status and retries
// slowly. It returns nil if an object is gone or terminating, and any other error for a retry.
func (r *Reconciler) handleWriteError(
	ctx context.Context, foo *v1alpha1.Foo, deployment *appsv1.Deployment, err error,
) (ctrl.Result, error) {
	switch {
	case patch.IsRefusal(err):
		ready := meaning.NotReady(meaning.ReasonRejected, err.Error())
		status := meaning.DesiredStatus(foo, deployment, ready)
		return ctrl.Result{RequeueAfter: blockedRetryDelay}, r.updateStatus(ctx, foo, status)
	case deployment != nil && apierrors.IsNotFound(err):
		return ctrl.Result{RequeueAfter: writeRetryDelay}, nil // deleted in between
	case apierrors.IsNotFound(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return ctrl.Result{}, nil // the namespace goes, and the Foo with it
	default:
		return ctrl.Result{}, err
	}
}

// syncStatusOnly syncs a Foo that is being deleted. It creates and repairs nothing: the Deployment
// is deleted with the Foo, or stays with --cascade=orphan. But a finalizer may hold the Foo for a
// long time, so its status must stay true.
func (r *Reconciler) syncStatusOnly(ctx context.Context, foo *v1alpha1.Foo) error {
	observed := &appsv1.Deployment{}
	key := client.ObjectKey{Namespace: foo.Namespace, Name: foo.Spec.DeploymentName}
	err := r.get(ctx, key, observed)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading Deployment: %w", err)
	}
	// If there is no Deployment, observed is empty, and foo does not control it.
	return r.updateStatus(ctx, foo, meaning.TerminatingStatus(foo, observed))
}

// updateStatus writes the status of foo if it differs from desired, and an Event about a new
// failure. Because of the resourceVersion of foo, the API server refuses a status that was computed
// from an older Foo.
func (r *Reconciler) updateStatus(
	ctx context.Context, foo *v1alpha1.Foo, desired v1alpha1.FooStatus,
) error {
	if equality.Semantic.DeepEqual(foo.Status, desired) {
		return nil
	}
	updated := foo.DeepCopy()
	updated.Status = desired
	err := r.Status().Update(ctx, updated)
	if patch.IsGone(err) {
		return nil // deleted; the event of that is on the way
	}
	if err != nil {
		return fmt.Errorf("updating status: %w", err)
	}
	before := meta.FindStatusCondition(foo.Status.Conditions, v1alpha1.ConditionReady)
	ready := meta.FindStatusCondition(desired.Conditions, v1alpha1.ConditionReady)
	failed := slices.Contains(meaning.Failures, ready.Reason)
	if failed && (before == nil || before.Reason != ready.Reason || before.Message != ready.Message) {
		r.recorder.Eventf(foo, nil, corev1.EventTypeWarning, ready.Reason, "SyncDeployment",
			"%s", ready.Message)
	}
	return nil
}
