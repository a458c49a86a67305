// Package owned keeps the objects that custom resources own as they should be, whatever their kind
// is:
//
//   - It creates an object with Create, which cannot take over what somebody else has created.
//   - It changes only the fields that the controller decides on, by a patch, and only if nobody
//     else wrote in between.
//   - It waits until the informer shows a write before it decides anything else.
//   - It tells an object that the API server refuses from a request that failed.
//
// A controller describes each kind of object that it owns by a [Kind], and makes [Objects] of it. A
// [Set] has the Objects of all kinds. A sync goes through all of them, and goes on after a write:
//
//	ready, err := c.children.Sync(ctx, foo)
//	if err != nil || ready == nil {
//		return err // nil after a write: its event brings the key back
//	}
//	return c.updateStatus(ctx, foo, ready)
package owned

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"

	"example.com/sample-controller/internal/consistency"
	"example.com/sample-controller/internal/patch"
)

const (
	// blockedRetryDelay is for obstacles that may go away without an event: the API server refuses
	// the object, or its name belongs to an object that the informer does not select.
	blockedRetryDelay = 15 * time.Second
	// staleRetryDelay is how long a key waits for the event of a write. The event may never come: an
	// object that is created and deleted while the watch is down leaves no trace in the informer.
	staleRetryDelay = time.Second

	// ControllerUIDIndex is the name of an index of the objects' informer, by the UIDs of owners.
	ControllerUIDIndex = "controllerUID"
)

// Object is a pointer to an object of the API, such as *appsv1.Deployment.
type Object interface {
	comparable
	metav1.Object
	runtime.Object
}

// Owners describes the custom resources of one controller. They own objects of one kind or several.
type Owners[O Object] struct {
	// GroupVersionKind is what the owner references of the objects say.
	GroupVersionKind schema.GroupVersionKind
	// Manager is the name of the controller, as field manager of its writes.
	Manager string
	// Informer has the owners. It must not be started yet.
	Informer cache.TypedSharedIndexInformer[O]
	// IsNew reports whether no sync of an owner has ended yet: its status is empty, for example.
	// Before the first object of such an owner is created, it need not be read again.
	IsNew func(owner O) bool
	// Get reads an owner from the API server.
	Get func(ctx context.Context, namespace, name string) (O, error)
	// Enqueue puts the key of an owner on the queue, because of an event of object.
	Enqueue func(key cache.ObjectName, object metav1.Object, because string)
	// EnqueueAfter puts the key of an owner on the queue later: there may be no event that does it.
	EnqueueAfter func(ctx context.Context, key cache.ObjectName, delay time.Duration, because string)
	// Recorder records Events about the owners.
	Recorder events.EventRecorder
}

// Kind describes one kind of object that each owner has one of.
type Kind[O, T Object] struct {
	// Name is the name of the kind, such as Deployment. Reasons of conditions and of Events begin
	// with it.
	Name string
	// Informer has the objects. It must not be started yet.
	Informer cache.TypedSharedIndexInformer[T]
	// Client returns a client for a namespace.
	Client func(namespace string) Client[T]

	// NameOf returns the name that the object of owner has. Its namespace is that of owner.
	NameOf func(owner O) string
	// New returns the object of owner as it is created, with a name and a namespace. An owner
	// reference is added, and SetFields is called. So it sets only what cannot be changed later.
	New func(owner O) T
	// SetFields sets the fields of object that this controller decides on, and no others. What the
	// API server fills in, and what other people and programs write, stays as it is. If the informer
	// selects by a label, SetFields sets that label, too. Otherwise no sync ever sees the object.
	SetFields func(object T, owner O)
	// Ready returns the condition of an object that has all these fields, or would have them if the
	// API server kept them: is it ready and, if not, why? If Ready is nil, the object is always
	// ready, as a ConfigMap is.
	Ready func(object T) metav1.Condition
}

// Client is the part of a generated client that Objects needs.
type Client[T Object] interface {
	Get(context.Context, string, metav1.GetOptions) (T, error)
	Create(context.Context, T, metav1.CreateOptions) (T, error)
	patch.Client[T]
	Delete(context.Context, string, metav1.DeleteOptions) error
}

// Objects are the objects of one kind that the owners of one controller own.
type Objects[O, T Object] struct {
	owners  Owners[O]
	kind    Kind[O, T]
	writes  *consistency.Writes
	repairs *patch.Repairs
}

// New returns the Objects of kind. It adds indexes to the informers.
func New[O, T Object](owners Owners[O], kind Kind[O, T]) (*Objects[O, T], error) {
	o := &Objects[O, T]{
		owners: owners, kind: kind, writes: consistency.NewWrites(kind.Informer.GetStore()),
		repairs: patch.NewRepairs(),
	}
	if err := o.addIndexers(); err != nil {
		return nil, fmt.Errorf("adding indexers for each %s: %w", kind.Name, err)
	}
	return o, nil
}

// AddEventHandler makes the events of the objects enqueue owners. What it returns is done when the
// handler has seen all objects that the informer has.
func (o *Objects[O, T]) AddEventHandler() (cache.DoneChecker, error) {
	handler, err := o.kind.Informer.AddTypedEventHandler(cache.TypedResourceEventHandlerFuncs[T]{
		AddFunc:    func(object T) { o.handleObject(object, "added") },
		UpdateFunc: func(_, object T) { o.handleObject(object, "updated") },
		DeleteFunc: func(deleted cache.DeletedObject[T]) {
			// If the watch missed the deletion, this may be an older state: the owner may have
			// changed since then, but not the name.
			var unknown T
			if deleted.OptionalObj != unknown {
				o.handleObject(deleted.OptionalObj, "deleted")
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("adding an event handler for each %s: %w", o.kind.Name, err)
	}
	return handler.HasSyncedChecker(), nil
}

// addIndexers adds the indexes by which one finds the objects of an owner, and the owners that name
// an object, without a search through all objects.
func (o *Objects[O, T]) addIndexers() error {
	err := o.kind.Informer.AddTypedIndexers(cache.TypedIndexers[T]{
		ControllerUIDIndex: func(object T) ([]string, error) {
			if controller := metav1.GetControllerOfNoCopy(object); controller != nil {
				return []string{string(controller.UID)}, nil
			}
			return nil, nil
		},
	})
	if err != nil {
		return err
	}
	return o.owners.Informer.AddTypedIndexers(cache.TypedIndexers[O]{
		o.kind.Name: func(owner O) ([]string, error) { return []string{o.key(owner).String()}, nil },
	})
}

// key returns namespace and name of the object of owner.
func (o *Objects[O, T]) key(owner O) cache.ObjectName {
	return cache.NewObjectName(owner.GetNamespace(), o.kind.NameOf(owner))
}

// handleObject enqueues the owner that controls object, and the owners whose object should have
// that name: they may wait for the name to become free, or may have lost the object.
func (o *Objects[O, T]) handleObject(object T, event string) {
	because := o.kind.Name + " " + event
	controller := metav1.GetControllerOfNoCopy(object)
	if controller != nil && o.isOwner(controller) {
		o.owners.Enqueue(cache.NewObjectName(object.GetNamespace(), controller.Name), object, because)
	}
	name := cache.MetaObjectToName(object).String()
	owners, err := o.owners.Informer.GetTypedIndexer().ByTypedIndex(o.kind.Name, name)
	if err != nil {
		utilruntime.HandleError(fmt.Errorf("finding the owners of %s %s: %w", o.kind.Name, name, err))
	}
	for _, owner := range owners {
		// Not by UID: others may have changed the name or the kind in the reference.
		if controller == nil || !o.isOwner(controller) || owner.GetName() != controller.Name {
			o.owners.Enqueue(cache.MetaObjectToName(owner), object, because)
		}
	}
}

// isOwner reports whether reference refers to a custom resource of this controller, of any version.
func (o *Objects[O, T]) isOwner(reference *metav1.OwnerReference) bool {
	gv, err := schema.ParseGroupVersion(reference.APIVersion)
	want := o.owners.GroupVersionKind
	return err == nil && gv.Group == want.Group && reference.Kind == want.Kind
}

// Informer returns the informer of the objects.
func (o *Objects[O, T]) Informer() cache.SharedIndexInformer { return o.kind.Informer }

// NotReadyReasons returns the reasons why an object is not ready, but those of Kind.Ready.
func (o *Objects[O, T]) NotReadyReasons() []string {
	return []string{o.kind.Name + reasonNameTaken, o.kind.Name + reasonRejected,
		o.kind.Name + reasonTerminating, o.kind.Name + reasonContested, o.kind.Name + reasonNotKept}
}

// Seen reports whether the informer shows the last write on behalf of the owner with that key. If
// it does not, a sync would decide on an old state.
func (o *Objects[O, T]) Seen(key cache.ObjectName) bool { return o.writes.Seen(key) }

// Forget forgets the writes on behalf of an owner that is gone.
func (o *Objects[O, T]) Forget(key cache.ObjectName) {
	o.writes.Clear(key)
	o.repairs.Clear(key)
}

// Sync takes one step towards the object that owner should have, and returns the condition of that
// object: ready or, if not, why not. If the API server refuses the object, its name belongs to
// somebody else, or others set repairs back, that is a condition, too; Sync then has enqueued owner
// for a later time.
//
// A nil condition means: nothing to report yet, after a write for example. An event or a delay brings
// the key of owner back. An error is to be retried with backoff.
func (o *Objects[O, T]) Sync(ctx context.Context, owner O) (*metav1.Condition, error) {
	observed := o.cached(owner)
	var none T
	switch {
	case observed == none:
		return o.create(ctx, owner)
	case !metav1.IsControlledBy(observed, owner):
		return o.nameTaken(observed), nil
	case observed.GetDeletionTimestamp() != nil:
		return NotReady(o.kind.Name+reasonTerminating,
			fmt.Sprintf("%s %q is being deleted", o.kind.Name, observed.GetName())), nil
	}
	return o.repair(ctx, owner, observed)
}

// ready returns whether an object that needs no repair is ready.
func (o *Objects[O, T]) ready(observed T) *metav1.Condition {
	if o.kind.Ready == nil {
		return &metav1.Condition{
			Type: typeReady, Status: metav1.ConditionTrue, Reason: o.kind.Name + reasonExists,
			Message: fmt.Sprintf("%s %q exists", o.kind.Name, observed.GetName()),
		}
	}
	return new(o.kind.Ready(observed))
}

// Get returns the object of owner as the informer shows it, or nil if there is none, or if that
// name belongs to somebody else.
func (o *Objects[O, T]) Get(owner O) T {
	object := o.cached(owner)
	var none T
	if object != none && !metav1.IsControlledBy(object, owner) {
		return none
	}
	return object
}

// cached returns the object with the name that the object of owner has, or nil.
func (o *Objects[O, T]) cached(owner O) (object T) {
	item, exists, err := o.kind.Informer.GetStore().GetByKey(o.key(owner).String())
	utilruntime.Must(err) // a cache does not fail
	if exists {
		object = item.(T)
	}
	return object
}
