package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/nats-io/nats.go/jetstream"

	"example.com/sample-controller/examples/internal/meaning"
	"example.com/sample-controller/internal/patch"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// Reasons of the Normal Events.
const (
	reasonCreated = "DeploymentCreated"
	reasonUpdated = "DeploymentUpdated"
	reasonDeleted = "DeploymentDeleted"
)

// createDeployment creates the Deployment of foo. If a Deployment of that name exists, it returns
// that one. The informer does not show it, because it lacks the label that the informer selects by,
// or because it is new.
func (c *Controller) createDeployment(
	ctx context.Context, foo *v1alpha1.Foo,
) (existing *appsv1.Deployment, err error) {
	desired := meaning.NewDeployment(foo)
	// The owner is an object that the API server does not have. The garbage collector would take it
	// for deleted, and delete the Deployment.
	desired.OwnerReferences = nil
	metav1.SetMetaDataLabel(&desired.ObjectMeta, meaning.FooUIDLabel, string(foo.UID))
	deployments := c.kubeClient.AppsV1().Deployments(foo.Namespace)
	created, err := deployments.Create(ctx, c.desiredDeployment(desired, foo),
		metav1.CreateOptions{FieldManager: controllerName})
	if apierrors.IsAlreadyExists(err) {
		return deployments.Get(ctx, desired.Name, metav1.GetOptions{})
	}
	if err != nil {
		return nil, c.handleWriteError(ctx, foo, nil, fmt.Errorf("creating Deployment: %w", err))
	}
	c.event(created, corev1.EventTypeNormal, reasonCreated, "CreateDeployment",
		"Created for Foo %s/%s", foo.Namespace, foo.Name)
	return nil, nil
}

// desiredDeployment returns a copy of observed in which everything is as foo asks for. It does not
// set the label that makes foo the owner: if you remove that, you release the Deployment.
func (c *Controller) desiredDeployment(
	observed *appsv1.Deployment, foo *v1alpha1.Foo,
) *appsv1.Deployment {
	desired := observed.DeepCopy()
	meaning.SetOwnedFields(desired, foo)
	metav1.SetMetaDataLabel(&desired.ObjectMeta, meaning.ManagedByLabel, controllerName)
	metav1.SetMetaDataAnnotation(&desired.ObjectMeta, ownerAnnotation,
		c.foos.store+"/"+keyOf(foo.Namespace, foo.Name))
	return desired
}

// updateDeployment makes desired of the observed Deployment. It sends only what differs, so that
// fields stay which this program does not know. The API server refuses the write if somebody else
// wrote in between.
func (c *Controller) updateDeployment(
	ctx context.Context, foo *v1alpha1.Foo, observed, desired *appsv1.Deployment,
) error {
	updated, err := patch.Send(ctx, c.kubeClient.AppsV1().Deployments(foo.Namespace),
		observed, desired, controllerName)
	if err != nil {
		return c.handleWriteError(ctx, foo, desired, fmt.Errorf("updating Deployment: %w", err))
	}
	c.event(updated, corev1.EventTypeNormal, reasonUpdated, "UpdateDeployment",
		"Updated for Foo %s/%s", foo.Namespace, foo.Name)
	return nil
}

// deleteOtherDeployments deletes the Deployments that foo owned under other names.
func (c *Controller) deleteOtherDeployments(ctx context.Context, foo *v1alpha1.Foo) error {
	owned, err := c.deploymentsByOwner.ByIndex(ownerIndex, string(foo.UID))
	if err != nil {
		return fmt.Errorf("finding the Deployments of the Foo: %w", err)
	}
	for _, object := range owned {
		deployment := object.(*appsv1.Deployment)
		if deployment.Namespace != foo.Namespace || deployment.Name == foo.Spec.DeploymentName {
			continue
		}
		if err := c.deleteDeployment(ctx, deployment, "replaced by another name"); err != nil {
			return err
		}
	}
	return nil
}

// finalize deletes what the Foo of key has left behind: first its Deployments, then its status. The
// Foo is no longer in the copy of the bucket. The status acts as a finalizer: if finalize is
// interrupted, the status brings the key back. finalize asks the servers, and not the caches: no
// later sync looks again, and a Deployment that is deleted by mistake takes its Pods along.
func (c *Controller) finalize(ctx context.Context, key string) error {
	_, err := c.foos.bucket.Get(ctx, key)
	if err == nil {
		return nil // its event is on the way
	}
	if !errors.Is(err, jetstream.ErrKeyNotFound) {
		return fmt.Errorf("reading Foo before its Deployments are deleted: %w", err)
	}
	namespace, _, _ := strings.Cut(key, ".")
	owned, err := c.kubeClient.AppsV1().Deployments(namespace).List(ctx,
		metav1.ListOptions{LabelSelector: meaning.FooUIDLabel + "=" + string(c.uid(key))})
	if err != nil {
		return fmt.Errorf("listing the Deployments of a Foo that is gone: %w", err)
	}
	for i := range owned.Items {
		if err := c.deleteDeployment(ctx, &owned.Items[i], "its Foo is gone"); err != nil {
			return err
		}
	}
	status := c.statuses.get(key)
	if status == nil {
		return nil
	}
	err = c.statuses.bucket.Delete(ctx, key, jetstream.LastRevision(status.revision))
	if err != nil {
		return fmt.Errorf("deleting status: %w", err)
	}
	return nil
}

// deleteDeployment deletes deployment unless it has changed since it was read.
func (c *Controller) deleteDeployment(
	ctx context.Context, deployment *appsv1.Deployment, why string,
) error {
	if deployment.DeletionTimestamp != nil {
		return nil
	}
	err := c.kubeClient.AppsV1().Deployments(deployment.Namespace).Delete(ctx, deployment.Name,
		metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{
				UID: &deployment.UID, ResourceVersion: &deployment.ResourceVersion,
			},
			PropagationPolicy: new(metav1.DeletePropagationBackground),
		})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("deleting Deployment: %w", err)
	}
	c.event(deployment, corev1.EventTypeNormal, reasonDeleted, "DeleteDeployment",
		"Deleted: %s", why)
	return nil
}

// handleWriteError handles the error of a change of deployment, or of a Create if that is nil. If
// the same write would fail again, it reports that in the status and retries slowly. This includes
// a missing namespace: if a namespace is deleted, its Foos stay.
func (c *Controller) handleWriteError(
	ctx context.Context, foo *v1alpha1.Foo, deployment *appsv1.Deployment, err error,
) error {
	switch {
	case deployment != nil && apierrors.IsNotFound(err):
		return nil // deleted in between; the event of the deletion brings the key back
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err),
		apierrors.IsNotFound(err):
		c.queue.AddAfter(keyOf(foo.Namespace, foo.Name), blockedRetryDelay)
		ready := meaning.NotReady(meaning.ReasonRejected, err.Error())
		return c.writeStatus(ctx, foo, meaning.DesiredStatus(foo, deployment, ready))
	default:
		return err
	}
}

// reportNameTaken reports that foo names a Deployment that is not its own.
func (c *Controller) reportNameTaken(
	ctx context.Context, foo *v1alpha1.Foo, taken *appsv1.Deployment,
) error {
	if taken.Labels[meaning.ManagedByLabel] != controllerName { // the informer does not show it
		c.queue.AddAfter(keyOf(foo.Namespace, foo.Name), blockedRetryDelay)
	}
	ready := meaning.NotReady(meaning.ReasonNameTaken,
		fmt.Sprintf("Deployment %q exists and does not belong to this Foo: delete it or choose another "+
			"spec.deploymentName", taken.Name))
	before := meta.FindStatusCondition(foo.Status.Conditions, v1alpha1.ConditionReady)
	err := c.writeStatus(ctx, foo, meaning.DesiredStatus(foo, nil, ready))
	if err == nil && (before == nil || before.Reason != meaning.ReasonNameTaken) {
		c.event(taken, corev1.EventTypeWarning, meaning.ReasonNameTaken, "SyncDeployment",
			"Foo %s/%s asks for this name", foo.Namespace, foo.Name)
	}
	return err
}

// event records an Event about deployment. There are none about Foos: an Event is about an object
// of the API server, and kubectl finds it by the namespace and the UID of that object.
func (c *Controller) event(
	deployment runtime.Object, eventType, reason, action, note string, args ...any,
) {
	c.recorder.Eventf(deployment, nil, eventType, reason, action, note, args...)
}

// writeStatus writes the status of foo if it differs from desired. Because of the revision, the
// NATS server refuses the write if somebody else, such as another controller, wrote in between.
func (c *Controller) writeStatus(
	ctx context.Context, foo *v1alpha1.Foo, desired v1alpha1.FooStatus,
) error {
	if equality.Semantic.DeepEqual(foo.Status, desired) {
		return nil
	}
	value, err := json.Marshal(map[string]any{"status": desired}) // only this part of a Foo
	if err != nil {
		return fmt.Errorf("encoding status: %w", err)
	}
	var revision uint64
	if key := keyOf(foo.Namespace, foo.Name); foo.ResourceVersion == "" {
		revision, err = c.statuses.bucket.Create(ctx, key, value)
	} else {
		known, _ := strconv.ParseUint(foo.ResourceVersion, 10, 64)
		revision, err = c.statuses.bucket.Update(ctx, key, value, known)
	}
	if err != nil {
		return fmt.Errorf("writing status: %w", err)
	}
	c.statuses.put(keyOf(foo.Namespace, foo.Name), revision, value)
	return nil
}
