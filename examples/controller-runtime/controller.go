package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"example.com/sample-controller/examples/internal/meaning"
	"example.com/sample-controller/internal/patch"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

const (
	controllerName = meaning.ControllerName

	// After an error, a key is retried after 5ms, 10ms, 20ms, 40ms, ... 30s, 30s.
	minRetryDelay = 5 * time.Millisecond
	maxRetryDelay = 30 * time.Second
	// blockedRetryDelay is for obstacles that may go away without an event: the API server refuses
	// the Deployment, or the name belongs to a Deployment that the Cache does not select.
	blockedRetryDelay = 15 * time.Second
	// writeRetryDelay is the time from a write to the next sync of a Foo if no event brings it back
	// before. An event that does replaces this retry: the queue holds each key once.
	writeRetryDelay = time.Second
	// syncTimeout limits one sync, and so the time that a shutdown waits for the last syncs.
	syncTimeout = 10 * time.Second
	// maxStaleness is how long a read waits for the Cache to show a write. Meanwhile it blocks a
	// worker.
	maxStaleness = 3 * time.Second

	controllerUIDIndex  = "controllerUID"
	deploymentNameIndex = "deploymentName"
)

// Reconciler makes Deployments match the specs of their Foos, and writes the Foos' statuses.
type Reconciler struct {
	client.Client               // reads from the Cache, and writes to the API server
	live          client.Reader // reads from the API server
	recorder      events.EventRecorder
	repairs       *patch.Repairs
	created       sync.Map // the keys of the Foos for which there was a Create
}

// SetupWithManager adds a Controller to mgr. It watches Foos and their Deployments, and calls r
// with the keys of the Foos that an event is about.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, workers int) error {
	err := mgr.GetFieldIndexer().IndexField(ctx, &appsv1.Deployment{}, controllerUIDIndex,
		func(deployment client.Object) []string {
			if owner := metav1.GetControllerOfNoCopy(deployment); owner != nil {
				return []string{string(owner.UID)}
			}
			return nil
		})
	if err != nil {
		return err
	}
	err = mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.Foo{}, deploymentNameIndex,
		func(foo client.Object) []string {
			return []string{foo.(*v1alpha1.Foo).Spec.DeploymentName}
		})
	if err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named(controllerName).
		For(&v1alpha1.Foo{}).
		Owns(&appsv1.Deployment{}).
		Watches(&appsv1.Deployment{}, handler.EnqueueRequestsFromMapFunc(r.foosThatName)).
		// A resync brings nothing new. GenerationChangedPredicate, which is common for the primary
		// resource, would go too far: it also drops changes of the status that others make.
		WithEventFilter(predicate.ResourceVersionChangedPredicate{}).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](
				minRetryDelay, maxRetryDelay),
		}).
		Complete(r)
}

// foosThatName maps a Deployment to the Foos that name it: they may wait for the name to become
// free, or may have lost the Deployment. Owns finds only the owner.
func (r *Reconciler) foosThatName(
	ctx context.Context, deployment client.Object,
) (requests []ctrl.Request) {
	var foos v1alpha1.FooList
	// Without waiting for writes: a Foo that is not in the Cache yet causes an event of its own.
	err := r.List(ctx, &foos, client.InNamespace(deployment.GetNamespace()),
		client.MatchingFields{deploymentNameIndex: deployment.GetName()},
		client.DisableReadYourWritesConsistency)
	if err != nil {
		log.FromContext(ctx).Error(err, "Finding the Foos of a Deployment failed")
	}
	for _, foo := range foos.Items {
		requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&foo)})
	}
	return requests
}

// Reconcile syncs the Foo of that key. The Controller logs its error, and retries.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	// Not canceled with ctx: a sync that has begun is finished, even if the Manager is to stop.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), syncTimeout)
	defer cancel()
	result, err := r.sync(ctx, request.NamespacedName)
	if apierrors.IsConflict(err) && !patch.IsRefusal(err) {
		// Somebody else wrote in between. That is normal, and the event of their write brings the
		// Foo back. The Controller would log and count the error. (Result{Requeue: true} would retry
		// with backoff and log nothing, but is deprecated.)
		log.FromContext(ctx).V(4).Info("Retrying after a conflict", "err", err)
		return ctrl.Result{RequeueAfter: writeRetryDelay}, nil
	}
	return result, err
}

// get reads an object as it was after this program's last write to it, or later. If the Cache does
// not show that within maxStaleness, get reads what it shows: the API server's own checks
// (AlreadyExists, Conflict) guard every write. The client alone would wait for the event of the
// write, or for a later event of that kind. There may be none, if the object was deleted while the
// watch was down, or if etcd was restored. And the client cannot ask the Cache how new it is: the
// interface of the informers does not have the store's resourceVersion.
func (r *Reconciler) get(ctx context.Context, key client.ObjectKey, object client.Object) error {
	waitCtx, cancel := context.WithTimeout(ctx, maxStaleness)
	defer cancel()
	err := r.Get(waitCtx, key, object)
	if errors.Is(err, context.DeadlineExceeded) {
		err = r.Get(ctx, key, object, client.DisableReadYourWritesConsistency)
	}
	return err
}

// sync takes one step from the state in the Cache towards what the Foo of key asks for. After a
// write of a Deployment it returns: the event of the write brings the key back. The zero Result
// means that there is nothing to do until the key comes back.
func (r *Reconciler) sync(ctx context.Context, key client.ObjectKey) (ctrl.Result, error) {
	foo := &v1alpha1.Foo{}
	err := r.get(ctx, key, foo)
	if apierrors.IsNotFound(err) {
		r.repairs.Clear(cache.NewObjectName(key.Namespace, key.Name))
		r.created.Delete(key)
		return ctrl.Result{}, nil // the garbage collector deletes its Deployments
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("reading Foo: %w", err)
	}
	if foo.DeletionTimestamp != nil {
		return ctrl.Result{}, r.syncStatusOnly(ctx, foo)
	}

	observed := &appsv1.Deployment{}
	key.Name = foo.Spec.DeploymentName
	err = r.get(ctx, key, observed)
	if apierrors.IsNotFound(err) {
		return r.createDeployment(ctx, foo)
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("reading Deployment: %w", err)
	}
	if !metav1.IsControlledBy(observed, foo) {
		status := meaning.DesiredStatus(foo, nil, meaning.NameTaken(observed))
		return ctrl.Result{}, r.updateStatus(ctx, foo, status)
	}
	if observed.DeletionTimestamp == nil {
		return r.repairDeployment(ctx, foo, observed)
	}
	status := meaning.DesiredStatus(foo, observed, meaning.ReadyCondition(observed))
	return ctrl.Result{}, r.updateStatus(ctx, foo, status)
}
