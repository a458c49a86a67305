package main

import (
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/watch"
	kubefake "k8s.io/client-go/kubernetes/fake"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"

	foofake "example.com/sample-controller/pkg/generated/clientset/versioned/fake"
	fooscheme "example.com/sample-controller/pkg/generated/clientset/versioned/scheme"
)

// newFakes returns clients like those of NewClientset of the two fake packages, whose objects have
// resourceVersions, too, and whose watches select by label. The Foos' own NewClientset would refuse to apply a status:
// https://github.com/kubernetes/kubernetes/issues/126850
func newFakes() (*kubefake.Clientset, *foofake.Clientset) {
	kube, foo := &kubefake.Clientset{}, &foofake.Clientset{}
	useTracker(&kube.Fake, kubescheme.Scheme)
	useTracker(&foo.Fake, fooscheme.Scheme)
	return kube, foo
}

// useTracker makes client keep its objects in a versionedTracker.
func useTracker(client *clienttesting.Fake, scheme *runtime.Scheme) {
	tracker := &versionedTracker{
		ObjectTracker: clienttesting.NewFieldManagedObjectTracker(scheme,
			serializer.NewCodecFactory(scheme).UniversalDecoder(),
			managedfields.NewDeducedTypeConverter()),
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
}

// matching does what the tracker leaves out: an object that the selector does not match is not
// shown, and one that ceases to match looks deleted.
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

// versionedTracker gives each written object the next resourceVersion of its resource, and refuses
// an update of an older version. The tracker that it wraps counts alike, but only for lists.
type versionedTracker struct {
	clienttesting.ObjectTracker
	mu       sync.Mutex
	versions map[schema.GroupVersionResource]int
}

// write makes one write of object with the version after the present one.
func (t *versionedTracker) write(
	gvr schema.GroupVersionResource, object runtime.Object, write func(runtime.Object) error,
) error {
	t.mu.Lock()
	defer t.mu.Unlock()
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

func (t *versionedTracker) Create(
	gvr schema.GroupVersionResource, object runtime.Object, ns string, opts ...metav1.CreateOptions,
) error {
	return t.write(gvr, object, func(object runtime.Object) error {
		return t.ObjectTracker.Create(gvr, object, ns, opts...)
	})
}

func (t *versionedTracker) Update(
	gvr schema.GroupVersionResource, object runtime.Object, ns string, opts ...metav1.UpdateOptions,
) error {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	live, err := t.liveVersion(gvr, ns, accessor.GetName())
	if err != nil {
		return err
	}
	if version := accessor.GetResourceVersion(); version != "" && version != live {
		return apierrors.NewConflict(gvr.GroupResource(), accessor.GetName(), nil)
	}
	return t.write(gvr, object, func(object runtime.Object) error {
		return t.ObjectTracker.Update(gvr, object, ns, opts...)
	})
}

func (t *versionedTracker) liveVersion(
	gvr schema.GroupVersionResource, ns, name string,
) (string, error) {
	object, err := t.Get(gvr, ns, name)
	if err != nil {
		return "", err
	}
	accessor, err := meta.Accessor(object)
	if err != nil {
		return "", err
	}
	return accessor.GetResourceVersion(), nil
}

// Apply merges first and gives the result its version in a second write, which watches see as one
// more modification.
func (t *versionedTracker) Apply(
	gvr schema.GroupVersionResource, object runtime.Object, ns string, opts ...metav1.PatchOptions,
) error {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	err = t.write(gvr, object, func(runtime.Object) error {
		return t.ObjectTracker.Apply(gvr, object, ns, opts...)
	})
	if err != nil {
		return err
	}
	return t.touch(gvr, ns, accessor.GetName())
}

// touch writes the object as it is, with a new version.
func (t *versionedTracker) touch(gvr schema.GroupVersionResource, ns, name string) error {
	object, err := t.Get(gvr, ns, name)
	if err != nil {
		return err
	}
	return t.write(gvr, object, func(object runtime.Object) error {
		return t.ObjectTracker.Update(gvr, object, ns)
	})
}
