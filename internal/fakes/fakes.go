// Package fakes provides clients for tests without an API server. A fake does not validate, fill in
// defaults or collect garbage: tests of these belong in test/.
package fakes

import (
	"errors"
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
	"k8s.io/apimachinery/pkg/watch"
	kubefake "k8s.io/client-go/kubernetes/fake"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"

	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
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
	c.Kube.AddReactor("*", "*", c.failures.react)
	c.Foo.AddReactor("*", "*", c.failures.react)
	foos := v1alpha1.Resource("foos").WithVersion(v1alpha1.GroupVersion.Version)
	c.KubeTracker = useTracker(&c.Kube.Fake, kubescheme.Scheme, nil)
	c.FooTracker = useTracker(&c.Foo.Fake, fooscheme.Scheme,
		map[schema.GroupVersionResource]schema.GroupVersionResource{
			foos: guess(foos.GroupVersion().WithKind("Foo")),
		})
	return c
}

// useTracker makes client keep its objects in a new Tracker. The Tracker keeps each resource in
// guesses under the name that is guessed for it: see plurals.
func useTracker(
	client *clienttesting.Fake, scheme *runtime.Scheme,
	guesses map[schema.GroupVersionResource]schema.GroupVersionResource,
) *Tracker {
	tracker := &Tracker{
		ObjectTracker: plurals{guess: guesses, ObjectTracker: clienttesting.NewObjectTracker(
			scheme, serializer.NewCodecFactory(scheme).UniversalDecoder())},
		versions: map[schema.GroupVersionResource]int{},
	}
	client.AddReactor("*", "*", clienttesting.ObjectReaction(tracker))
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

// Tracker gives each written object the next resourceVersion of its resource, and refuses an update
// of an older version. The tracker that it wraps counts in the same way, but only for lists.
type Tracker struct {
	clienttesting.ObjectTracker
	mu       sync.Mutex
	versions map[schema.GroupVersionResource]int
}

// Version returns the resourceVersion of the last write to that resource. Each write adds one.
func (t *Tracker) Version(gvr schema.GroupVersionResource) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.versions[gvr]
}

// write writes object with the next resourceVersion. t.mu must be held.
func (t *Tracker) write(
	gvr schema.GroupVersionResource, object runtime.Object, write func(runtime.Object) error,
) error {
	version := max(t.versions[gvr], 1) + 1
	object = object.DeepCopyObject()
	accessor, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	accessor.SetResourceVersion(strconv.Itoa(version))
	if err := write(object); err != nil {
		return err
	}
	t.versions[gvr] = version
	return nil
}

// checkVersion refuses a write if the object has another version. An empty version allows any. The
// object must exist.
func (t *Tracker) checkVersion(
	gvr schema.GroupVersionResource, ns, name, version string,
) error {
	object, err := t.Get(gvr, ns, name)
	if err != nil {
		return err
	}
	live, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	if version != "" && version != live.GetResourceVersion() {
		return apierrors.NewConflict(gvr.GroupResource(), name, errors.New("old version"))
	}
	return nil
}

func (t *Tracker) Create(
	gvr schema.GroupVersionResource, object runtime.Object, ns string, opts ...metav1.CreateOptions,
) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.write(gvr, object, func(object runtime.Object) error {
		return t.ObjectTracker.Create(gvr, object, ns, opts...)
	})
}

func (t *Tracker) Update(
	gvr schema.GroupVersionResource, object runtime.Object, ns string, opts ...metav1.UpdateOptions,
) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	accessor, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	err = t.checkVersion(gvr, ns, accessor.GetName(), accessor.GetResourceVersion())
	if err != nil {
		return err
	}
	return t.write(gvr, object, func(object runtime.Object) error {
		return t.ObjectTracker.Update(gvr, object, ns, opts...)
	})
}

// Delete honours the precondition of a resourceVersion, which the wrapped tracker does not.
func (t *Tracker) Delete(
	gvr schema.GroupVersionResource, ns, name string, opts ...metav1.DeleteOptions,
) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	version := ""
	for _, options := range opts {
		if options.Preconditions != nil && options.Preconditions.ResourceVersion != nil {
			version = *options.Preconditions.ResourceVersion
		}
	}
	if err := t.checkVersion(gvr, ns, name, version); err != nil {
		return err
	}
	return t.ObjectTracker.Delete(gvr, ns, name, opts...)
}
