package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"example.com/sample-controller/examples/website/meaning"
	"example.com/sample-controller/examples/website/outside"
	"example.com/sample-controller/examples/website/pkg/apis/website/v1alpha1"
	"example.com/sample-controller/internal/extra/owned"
)

const (
	// After an error, a key is retried after 5ms, 10ms, 20ms, 40ms, ... 30s, 30s.
	minRetryDelay = 5 * time.Millisecond
	maxRetryDelay = 30 * time.Second
	// conflictRetryDelay is how long a key waits after a conflict, if no event comes first.
	conflictRetryDelay = time.Second
	// blockedRetryDelay is for obstacles that may go away without an event: the API server refuses a
	// child, or its name belongs to an object that the Cache does not select.
	blockedRetryDelay = 15 * time.Second
	// busyRetryDelay is how long, at least, a Website waits if the registry is busy. If many wait,
	// they come back at different times, up to twice as late.
	busyRetryDelay = 2 * time.Second
	// syncTimeout limits one sync, and so the time that a shutdown waits for the last syncs.
	syncTimeout = 10 * time.Second
	// maxStaleness is how long a read waits for the Cache to show a write. Meanwhile it blocks a
	// worker.
	maxStaleness = 3 * time.Second
)

// Reconciler makes ConfigMaps, Services and Deployments match the specs of their Websites, tells
// the registry of the Websites, and writes the Websites' statuses.
type Reconciler struct {
	client.Client               // a boundedClient: reads from the Cache, and writes to the API server
	live          client.Client // also reads from the API server
	recorder      events.EventRecorder
	registry      *outside.Client
	resync        time.Duration
	// due is when each Website is registered again, even if nothing has changed. Its keys are of type
	// client.ObjectKey, its values of type time.Time.
	due sync.Map
}

// SetupWithManager adds a Controller to mgr. It watches Websites and what they own, and calls r
// with the keys of the Websites that an event is about.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, workers int) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named(meaning.ControllerName).
		For(&v1alpha1.Website{}).
		Owns(&corev1.ConfigMap{}).
		Owns(&corev1.Service{}).
		Owns(&appsv1.Deployment{}).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](
				minRetryDelay, maxRetryDelay),
		}).
		Complete(r)
}

// boundedClient reads an object as it was after this program's last write to it, or later. If the
// Cache does not show that within maxStaleness, boundedClient reads what it shows: the API server's
// own checks (AlreadyExists, Conflict) guard every write. Without it, a read would wait for the
// event of the write, or for a later event of that kind. There may be none, if the object was
// deleted while the watch was down.
type boundedClient struct{ client.Client }

// Get reads an object from the Cache.
func (c boundedClient) Get(
	ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption,
) error {
	waitCtx, cancel := context.WithTimeout(ctx, maxStaleness)
	defer cancel()
	err := c.Client.Get(waitCtx, key, object, options...)
	if errors.Is(err, context.DeadlineExceeded) {
		options = append(options, client.DisableReadYourWritesConsistency)
		err = c.Client.Get(ctx, key, object, options...)
	}
	return err
}

// Reconcile syncs the Website of that key. The Controller logs its error, and retries.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	// Not canceled with ctx: a sync that has begun is finished, even if the Manager is to stop.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), syncTimeout)
	defer cancel()
	website := &v1alpha1.Website{}
	err := r.Get(ctx, request.NamespacedName, website)
	if apierrors.IsNotFound(err) {
		r.due.Delete(request.NamespacedName)
		return ctrl.Result{}, nil // the garbage collector deletes the children
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	var result ctrl.Result
	if website.DeletionTimestamp.IsZero() {
		result, err = r.sync(ctx, website)
	} else {
		err = r.finalize(ctx, website)
	}
	switch {
	case apierrors.IsConflict(err):
		// Somebody else wrote in between. That is normal, and the event of their write brings the
		// Website back. The Controller would log and count the error.
		log.FromContext(ctx).V(4).Info("Retrying after a conflict", "err", err)
		return ctrl.Result{RequeueAfter: conflictRetryDelay}, nil
	case errors.Is(err, outside.ErrBusy):
		return ctrl.Result{RequeueAfter: wait.Jitter(busyRetryDelay, 1)}, nil
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return ctrl.Result{}, nil // the namespace goes, and the Website with it
	}
	return result, err
}

// sync takes a step for a Website that is not being deleted. If there is no error, the result says
// when the key comes back, even if nothing happens.
func (r *Reconciler) sync(ctx context.Context, website *v1alpha1.Website) (ctrl.Result, error) {
	if err := r.ensureFinalizer(ctx, website); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err) // deleted; the event is on the way
	}
	status, blocked, err := r.syncChildren(ctx, r.Client, website)
	if apierrors.IsAlreadyExists(err) {
		// The Cache does not show a child that is there: it lacks the label by which that selects.
		status, blocked, err = r.syncChildren(ctx, r.live, website)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	again, registryErr := r.register(ctx, website, &status)
	if err := r.updateStatus(ctx, website, status); err != nil {
		return ctrl.Result{}, err
	}
	if registryErr != nil {
		return ctrl.Result{}, registryErr
	}
	if blocked {
		again = blockedRetryDelay
	}
	return ctrl.Result{RequeueAfter: again}, nil
}

// syncChildren writes all children of website, which c reads, and returns the status that website
// should have then. It stops at a child that is blocked. The order matters: the Deployment mounts
// the ConfigMap, so it must not be there before that.
func (r *Reconciler) syncChildren(
	ctx context.Context, c client.Client, website *v1alpha1.Website,
) (status v1alpha1.WebsiteStatus, blocked bool, err error) {
	configMap := meaning.NewConfigMap(website)
	service, deployment := meaning.NewService(website), meaning.NewDeployment(website)
	for _, child := range []struct {
		object    client.Object
		setFields func()
	}{
		{configMap, func() { meaning.SetConfigMapFields(configMap, website) }},
		{service, func() { meaning.SetServiceFields(service, website) }},
		{deployment, func() { meaning.SetDeploymentFields(deployment, website) }},
	} {
		problem, err := r.syncChild(ctx, c, website, child.object, child.setFields)
		if err != nil {
			return status, false, err
		}
		if problem != nil {
			status, err := r.observedStatus(ctx, website, *problem)
			return status, true, err
		}
	}
	// The writes have filled the children in with what the API server stored.
	ready := meaning.ReadyCondition(deployment)
	return meaning.DesiredStatus(website, service, deployment, ready), false, nil
}

// syncChild creates object, or sets its fields if they differ. If that cannot be done, it returns
// the Ready condition that says why. CreateOrUpdate alone would change the object of somebody else:
// SetControllerReference refuses only one that has a controller of another name.
func (r *Reconciler) syncChild(
	ctx context.Context, c client.Client, website *v1alpha1.Website, object client.Object,
	setFields func(),
) (problem *metav1.Condition, err error) {
	gvk, err := r.GroupVersionKindFor(object)
	if err != nil {
		return nil, err
	}
	result, err := controllerutil.CreateOrUpdate(ctx, c, object, func() error {
		switch exists := object.GetUID() != ""; {
		case exists && !metav1.IsControlledBy(object, website):
			problem = nameTaken(gvk.Kind, object)
			return nil
		case exists && object.GetDeletionTimestamp() != nil:
			problem = owned.NotReady(gvk.Kind+"Terminating",
				fmt.Sprintf("%s %q is being deleted", gvk.Kind, object.GetName()))
			return nil
		}
		setFields()
		return controllerutil.SetControllerReference(website, object, r.Scheme())
	})
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil, err
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err):
		return owned.NotReady(gvk.Kind+"Rejected", err.Error()), nil
	case err != nil:
		return nil, fmt.Errorf("writing %s: %w", gvk.Kind, err)
	case result == controllerutil.OperationResultCreated:
		r.recordWrite(website, object, gvk.Kind, "Create", "Created")
	case result == controllerutil.OperationResultUpdated:
		r.recordWrite(website, object, gvk.Kind, "Update", "Updated")
	}
	return problem, nil
}

func (r *Reconciler) recordWrite(
	website *v1alpha1.Website, object client.Object, kind, verb, past string,
) {
	r.recorder.Eventf(website, object, corev1.EventTypeNormal, kind+past, verb+kind, "%s %s %q", past,
		kind, object.GetName())
}

// nameTaken returns the condition of a Website whose child should have the name of object, which it
// does not own.
func nameTaken(kind string, object client.Object) *metav1.Condition {
	holder := "no controller"
	if controller := metav1.GetControllerOfNoCopy(object); controller != nil {
		holder = fmt.Sprintf("%s %q", controller.Kind, controller.Name)
	}
	return owned.NotReady(kind+"NameTaken", fmt.Sprintf("%s %q exists and belongs to %s, not to this "+
		"Website: delete it or choose another name", kind, object.GetName(), holder))
}

// observedStatus returns the status of website by what the Cache shows, with ready as its Ready
// condition. What the status says about the registry stays as it is.
func (r *Reconciler) observedStatus(
	ctx context.Context, website *v1alpha1.Website, ready metav1.Condition,
) (status v1alpha1.WebsiteStatus, err error) {
	service, deployment := meaning.NewService(website), meaning.NewDeployment(website)
	for _, object := range []client.Object{service, deployment} {
		err := r.Get(ctx, client.ObjectKeyFromObject(object), object)
		if client.IgnoreNotFound(err) != nil {
			return status, err
		}
	}
	if !metav1.IsControlledBy(service, website) {
		service = nil
	}
	if !metav1.IsControlledBy(deployment, website) {
		deployment = nil
	}
	return meaning.DesiredStatus(website, service, deployment, ready), nil
}

// updateStatus writes the status of website if it differs from desired, and an Event about a new
// failure. Because of the resourceVersion of website, the API server refuses a status that was
// computed from an older Website.
func (r *Reconciler) updateStatus(
	ctx context.Context, website *v1alpha1.Website, desired v1alpha1.WebsiteStatus,
) error {
	if equality.Semantic.DeepEqual(website.Status, desired) {
		return nil
	}
	updated := website.DeepCopy()
	updated.Status = desired
	err := r.Status().Update(ctx, updated)
	if apierrors.IsNotFound(err) {
		return nil // deleted; the event of that is on the way
	}
	if err != nil {
		return fmt.Errorf("updating status: %w", err)
	}
	for _, failure := range meaning.NewFailures(website, desired) {
		r.recorder.Eventf(website, nil, corev1.EventTypeWarning, failure.Reason, "SyncWebsite",
			"%s", failure.Message)
	}
	return nil
}
