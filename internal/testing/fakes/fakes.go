// Package fakes provides clients for tests without an API server. A fake does not validate, fill in
// defaults or collect garbage: tests of these belong in test/.
package fakes

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	kubefake "k8s.io/client-go/kubernetes/fake"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	foofake "example.com/sample-controller/pkg/generated/clientset/versioned/fake"
	fooscheme "example.com/sample-controller/pkg/generated/clientset/versioned/scheme"
)

// Clients holds a fake of each client that the controller has, and the trackers of their objects.
//
// A test writes to a tracker as somebody else: such writes are not among the clients' Actions, and
// no reactor changes them.
type Clients struct {
	Kube                    *kubefake.Clientset
	Foo                     *foofake.Clientset
	KubeTracker, FooTracker *Tracker

	failures *failures
}

// New returns clients like those of NewClientset in the two fake packages, but without server-side
// apply. Unlike those, they give their objects resourceVersions, and select by label in their
// watches.
func New() Clients {
	c := Clients{Kube: &kubefake.Clientset{}, Foo: &foofake.Clientset{}, failures: &failures{}}
	c.KubeTracker = c.Add(&c.Kube.Fake, kubescheme.Scheme)
	c.FooTracker = c.Add(&c.Foo.Fake, fooscheme.Scheme)
	return c
}

// Add makes another fake client keep its objects in a new Tracker, and fail as Fail says. The
// client is empty so far: &fake.Clientset{}.
func (c Clients) Add(client *clienttesting.Fake, scheme *runtime.Scheme) *Tracker {
	tracker := &Tracker{
		ObjectTracker: clienttesting.NewObjectTracker(
			scheme, serializer.NewCodecFactory(scheme).UniversalDecoder()),
		versions: map[schema.GroupVersionResource]int{},
	}
	client.AddReactor("*", "*", c.failures.react)
	client.AddReactor("*", "*", tracker.react)
	client.AddWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		options := action.(clienttesting.WatchActionImpl).ListOptions
		w, err := tracker.Watch(action.GetResource(), action.GetNamespace(), options)
		if err != nil {
			return true, nil, err
		}
		return true, watch.Filter(w, matching(options.LabelSelector)), nil
	})
	return tracker
}

// Lag delays each event of the watches of a resource that begin from now on. It stops these watches
// when the test ends.
func Lag(t *testing.T, client *clienttesting.Fake, resource string, delay time.Duration) {
	source := client.WatchReactionChain[0]
	slow := func(action clienttesting.Action) (bool, watch.Interface, error) {
		_, events, err := source.React(action)
		if err != nil {
			return true, nil, err
		}
		delayed := watch.NewRaceFreeFake()
		go func() {
			for event := range events.ResultChan() {
				time.AfterFunc(delay, func() { delayed.Action(event.Type, event.Object) })
			}
		}()
		t.Cleanup(events.Stop)
		return true, delayed, nil
	}
	client.PrependWatchReactor(resource, slow)
}

// matching selects by label, which the tracker does not: a watch shows no object that the selector
// does not match, and an object that ceases to match looks deleted.
func matching(labelSelector string) watch.FilterFunc {
	selector, err := labels.Parse(labelSelector)
	if err != nil {
		panic(err)
	}
	return func(event watch.Event) (watch.Event, bool) {
		accessor, err := meta.Accessor(event.Object)
		if err != nil || selector.Matches(labels.Set(accessor.GetLabels())) {
			return event, true
		}
		shown := event.Type == watch.Modified
		event.Type = watch.Deleted
		return event, shown
	}
}

// Tracker does what the one that it wraps does not do. It gives each written object the next
// resourceVersion of its resource. (The wrapped one counts in the same way, but only for lists.) It
// refuses a write to another version or to another object than the writer has seen. And an object
// with finalizers stays, marked as being deleted, until the last of them is gone.
type Tracker struct {
	clienttesting.ObjectTracker
	mu       sync.Mutex
	versions map[schema.GroupVersionResource]int
	released sync.Map // objects that are gone since the Update of their last finalizer, by idOf
}

// write gives object the next resourceVersion and writes it. t.mu must be held.
func (t *Tracker) write(
	gvr schema.GroupVersionResource, object metav1.Object, write func() error,
) error {
	version := max(t.versions[gvr], 1) + 1
	object.SetResourceVersion(strconv.Itoa(version))
	if err := write(); err != nil {
		return err
	}
	t.versions[gvr] = version
	return nil
}

// live returns the object of that name. It returns a conflict if the object has another UID or
// another resourceVersion. An empty one allows any.
func (t *Tracker) live(
	gvr schema.GroupVersionResource, ns, name string, uid types.UID, version string,
) (runtime.Object, metav1.Object, error) {
	object, err := t.Get(gvr, ns, name)
	if err != nil {
		return nil, nil, err
	}
	live, err := meta.Accessor(object)
	if err != nil {
		return nil, nil, err
	}
	conflict := ""
	switch {
	case uid != "" && uid != live.GetUID():
		conflict = "another object"
	case version != "" && version != live.GetResourceVersion():
		conflict = "old version"
	default:
		return object, live, nil
	}
	return nil, nil, apierrors.NewConflict(gvr.GroupResource(), name, errors.New(conflict))
}

// Create creates a copy of object.
func (t *Tracker) Create(
	gvr schema.GroupVersionResource, object runtime.Object, ns string, opts ...metav1.CreateOptions,
) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	object = object.DeepCopyObject()
	created, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	return t.write(gvr, created, func() error {
		return t.ObjectTracker.Create(gvr, object, ns, opts...)
	})
}

// Update replaces the object of that name by a copy of object.
func (t *Tracker) Update(
	gvr schema.GroupVersionResource, object runtime.Object, ns string, opts ...metav1.UpdateOptions,
) error {
	object = object.DeepCopyObject()
	gone, err := t.replace(gvr, object, ns, func() error {
		return t.ObjectTracker.Update(gvr, object, ns, opts...)
	})
	if gone {
		t.released.Store(idOf(gvr, object.(metav1.Object)), object)
	}
	return err
}

// Patch replaces the object of that name by object, which has been patched, and gives object its
// new resourceVersion.
func (t *Tracker) Patch(
	gvr schema.GroupVersionResource, object runtime.Object, ns string, opts ...metav1.PatchOptions,
) error {
	_, err := t.replace(gvr, object, ns, func() error {
		return t.ObjectTracker.Patch(gvr, object, ns, opts...)
	})
	return err
}

// replace writes object, and then deletes it if it was waiting for its last finalizer.
func (t *Tracker) replace(
	gvr schema.GroupVersionResource, object runtime.Object, ns string, write func() error,
) (gone bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now, err := meta.Accessor(object)
	if err != nil {
		return false, err
	}
	_, live, err := t.live(gvr, ns, now.GetName(), now.GetUID(), now.GetResourceVersion())
	if err != nil {
		return false, err
	}
	if err := t.write(gvr, now, write); err != nil {
		return false, err
	}
	if live.GetDeletionTimestamp() != nil && len(live.GetFinalizers()) > 0 &&
		len(now.GetFinalizers()) == 0 {
		return true, t.ObjectTracker.Delete(gvr, ns, now.GetName())
	}
	return false, nil
}

// react answers a request. The reaction that it wraps reads an object again after an Update, but
// the Update may have removed the last finalizer and, with it, the object.
func (t *Tracker) react(action clienttesting.Action) (bool, runtime.Object, error) {
	handled, object, err := clienttesting.ObjectReaction(t)(action)
	if update, ok := action.(clienttesting.UpdateActionImpl); ok && apierrors.IsNotFound(err) {
		id := idOf(update.Resource, update.Object.(metav1.Object))
		if gone, ok := t.released.LoadAndDelete(id); ok {
			return true, gone.(runtime.Object), nil
		}
	}
	return handled, object, err
}

// idOf returns what no other object has.
func idOf(gvr schema.GroupVersionResource, object metav1.Object) string {
	return fmt.Sprint(gvr, cache.MetaObjectToName(object), object.GetUID())
}

// Delete deletes the object of that name, or marks it as being deleted if it has finalizers.
func (t *Tracker) Delete(
	gvr schema.GroupVersionResource, ns, name string, opts ...metav1.DeleteOptions,
) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var uid types.UID
	var version string
	for _, options := range opts {
		if required := options.Preconditions; required != nil {
			uid, version = *cmp.Or(required.UID, &uid), *cmp.Or(required.ResourceVersion, &version)
		}
	}
	object, live, err := t.live(gvr, ns, name, uid, version)
	if err != nil {
		return err
	}
	if len(live.GetFinalizers()) == 0 {
		return t.ObjectTracker.Delete(gvr, ns, name, opts...)
	}
	if live.GetDeletionTimestamp() != nil {
		return nil
	}
	live.SetDeletionTimestamp(new(metav1.Now()))
	return t.write(gvr, live, func() error { return t.ObjectTracker.Update(gvr, object, ns) })
}

// CountWrites returns how many actions have that verb and resource. The verb "*" stands for all
// writes, and the resource "*" for all resources.
func CountWrites(actions []clienttesting.Action, verb, resource string) (n int) {
	for _, action := range actions {
		reads := slices.Contains([]string{"get", "list", "watch"}, action.GetVerb())
		if verb == "*" && !reads && (resource == "*" || action.Matches(action.GetVerb(), resource)) ||
			action.Matches(verb, resource) {
			n++
		}
	}
	return n
}
