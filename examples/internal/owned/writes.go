package owned

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"example.com/sample-controller/internal/patch"
)

// create creates the object of owner.
func (o *Objects[O, T]) create(ctx context.Context, owner O) (*metav1.Condition, error) {
	if !o.owners.IsNew(owner) || o.writes.HasWritten(cache.MetaObjectToName(owner)) { // not the first
		if changed, err := o.owners.HasChanged(ctx, owner); changed || err != nil {
			return nil, err // the event of the change is on the way
		}
		// A Create that ends with AlreadyExists would count in a ResourceQuota for some minutes.
		if condition, err := o.resolveAlreadyExists(ctx, owner); !patch.IsGone(err) {
			return condition, err
		}
	}
	object := o.kind.New(owner)
	object.SetOwnerReferences(append(object.GetOwnerReferences(),
		*metav1.NewControllerRef(owner, o.owners.GroupVersionKind)))
	o.kind.SetFields(object, owner)
	created, err := patch.Try(o.repairs, owner, "", blockedRetryDelay, func() (T, error) {
		return o.kind.Client(owner.GetNamespace()).Create(
			ctx, object, metav1.CreateOptions{FieldManager: o.owners.Manager})
	})
	switch {
	case apierrors.IsAlreadyExists(err) && !patch.IsRefusal(err):
		o.writes.WroteAt(cache.MetaObjectToName(owner), "") // so the next sync asks first
		return o.resolveAlreadyExists(ctx, owner)
	case err != nil:
		return o.handleWriteError(ctx, owner, false, fmt.Errorf("creating %s: %w", o.kind.Name, err))
	}
	o.repairs.Created(cache.MetaObjectToName(owner), owner, created, o.desired(created, owner))
	o.wrote(ctx, owner, created, "Create", "Created")
	return nil, nil
}

// HasChanged asks the API server whether owner is no longer what the cache shows: it has changed, or
// is deleted. The garbage collector deletes the objects of an owner that is deleted, and their watch
// may show that first. Without HasChanged, the controller would create them again until the watch of
// the owners catches up.
func (o Owners[O]) HasChanged(ctx context.Context, owner O) (bool, error) {
	live, err := o.Get(ctx, owner.GetNamespace(), owner.GetName())
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("asking whether the %s has changed: %w", o.GroupVersionKind.Kind, err)
	}
	return live.GetUID() != owner.GetUID() || live.GetGeneration() != owner.GetGeneration() ||
		live.GetDeletionTimestamp() != nil, nil
}

// resolveAlreadyExists handles an object that the informer does not show: the informer is behind, or
// the object lacks the label that it selects by. If there is none, the error is NotFound.
func (o *Objects[O, T]) resolveAlreadyExists(
	ctx context.Context, owner O,
) (*metav1.Condition, error) {
	observed, err := o.kind.Client(owner.GetNamespace()).Get(
		ctx, o.kind.NameOf(owner), metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading %s that may exist: %w", o.kind.Name, err)
	}
	if !metav1.IsControlledBy(observed, owner) {
		o.enqueueAfter(ctx, owner, blockedRetryDelay, "the "+o.kind.Name+" belongs to somebody else")
		return o.nameTaken(observed), nil
	}
	if equality.Semantic.DeepEqual(observed, o.desired(observed, owner)) {
		o.recordWrite(ctx, owner, observed) // of another process: the informer will show it
		return nil, nil
	}
	// It belongs to owner, but somebody has removed the label: put it back.
	return o.repair(ctx, owner, observed)
}

// repair makes what it should be of the object that was observed. If repairs do not last, the next
// one waits, and the condition says so.
func (o *Objects[O, T]) repair(
	ctx context.Context, owner O, observed T,
) (*metav1.Condition, error) {
	desired := o.desired(observed, owner)
	judgment, err := o.repairs.Judge(cache.MetaObjectToName(owner), owner, observed, desired,
		func() (patch.Object, error) {
			return o.kind.Client(owner.GetNamespace()).Get(
				ctx, observed.GetName(), metav1.GetOptions{})
		})
	if err != nil {
		return nil, err
	}
	if judgment.After > 0 {
		o.enqueueAfter(ctx, owner, judgment.After, "repairs do not last")
	}
	switch judgment.Outcome {
	case patch.Repair:
		return o.update(ctx, owner, observed, desired)
	case patch.Kept:
		return o.ready(observed), nil
	case patch.NotKept:
		ready := o.ready(desired) // with the count that owner asks for
		ready.Message += "; the API server does not keep what the controller sends as " + judgment.Fields
		if o.Get(owner) == *new(T) { // without its label, the informer shows no change of it
			return NotReady(o.kind.Name+reasonNotKept, ready.Message), nil
		}
		if ready.Status == metav1.ConditionTrue {
			ready.Reason = o.kind.Name + reasonNotKept
		}
		return ready, nil
	case patch.Contested:
		return NotReady(o.kind.Name+reasonContested, fmt.Sprintf("%s %q: %s sets back each repair of %s",
			o.kind.Name, observed.GetName(), judgment.Writers, judgment.Fields)), nil
	default:
		return nil, nil // it is repaired soon
	}
}

// desired returns what an object of owner should be.
func (o *Objects[O, T]) desired(object T, owner O) T {
	desired := object.DeepCopyObject().(T)
	o.kind.SetFields(desired, owner)
	return desired
}

// update changes the observed object to desired. It sends only the difference, so that fields that
// this program does not know are kept. The API server refuses the write if somebody else wrote in
// between.
func (o *Objects[O, T]) update(
	ctx context.Context, owner O, observed, desired T,
) (*metav1.Condition, error) {
	updated, err := patch.Try(o.repairs, owner, observed.GetUID(), blockedRetryDelay, func() (T, error) {
		return patch.Send(
			ctx, o.kind.Client(owner.GetNamespace()), observed, desired, o.owners.Manager)
	})
	if err != nil {
		return o.handleWriteError(ctx, owner, true, fmt.Errorf("updating %s: %w", o.kind.Name, err))
	}
	if !o.repairs.Sent(cache.MetaObjectToName(owner), owner, updated, o.desired(updated, owner)) {
		o.enqueueAfter(ctx, owner, 0, "the repair has changed nothing")
		return nil, nil
	}
	o.wrote(ctx, owner, updated, "Update", "Updated")
	return nil, nil
}

// wrote notes, logs and records a write.
func (o *Objects[O, T]) wrote(ctx context.Context, owner O, written T, verb, past string) {
	o.recordWrite(ctx, owner, written)
	klog.FromContext(ctx).V(2).Info(past+" "+o.kind.Name, "object", klog.KObj(written))
	o.owners.Recorder.Eventf(owner, written, corev1.EventTypeNormal, o.kind.Name+past,
		verb+o.kind.Name, "%s %s %q", past, o.kind.Name, written.GetName())
}

// recordWrite makes the next sync of owner wait until the informer shows the write. It also makes
// sure that there is a next sync, even if the event of the write never comes.
func (o *Objects[O, T]) recordWrite(ctx context.Context, owner O, written T) {
	key := cache.MetaObjectToName(owner)
	o.writes.WroteAt(key, written.GetResourceVersion())
	time.AfterFunc(staleRetryDelay, func() {
		if o.writes.Pending(key) {
			o.owners.EnqueueAfter(ctx, key, 0, "no sync has seen the last write")
		}
	})
}

// handleWriteError handles the error of a Create or of an update. If the API server would refuse
// the same write again, it returns a condition that says so, and retries slowly. It returns nothing
// if the object or the namespace is gone, and any other error for a retry.
func (o *Objects[O, T]) handleWriteError(
	ctx context.Context, owner O, existed bool, err error,
) (*metav1.Condition, error) {
	switch {
	case patch.IsRefusal(err):
		o.enqueueAfter(ctx, owner, blockedRetryDelay, "the API server refuses the "+o.kind.Name)
		return NotReady(o.kind.Name+reasonRejected, err.Error()), nil
	case existed && apierrors.IsNotFound(err):
		// Deleted in between. If the informer did not show it, no event tells of the deletion.
		o.enqueueAfter(ctx, owner, staleRetryDelay, "the "+o.kind.Name+" was deleted in between")
		return nil, nil
	case apierrors.IsNotFound(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil, nil // the namespace goes, and the owner with it
	default:
		return nil, err
	}
}

func (o *Objects[O, T]) enqueueAfter(
	ctx context.Context, owner O, delay time.Duration, because string,
) {
	o.owners.EnqueueAfter(ctx, cache.MetaObjectToName(owner), delay, because)
}
