package fakes

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"
)

// plurals translates resources for a tracker that guesses the resource of a kind: gatewaies for
// Gateway, and boxs for Box. If the guess is right, nothing changes.
type plurals struct {
	clienttesting.ObjectTracker
	guess map[schema.GroupVersionResource]schema.GroupVersionResource
}

// guess returns the resource that the tracker guesses for a kind.
func guess(kind schema.GroupVersionKind) schema.GroupVersionResource {
	plural, _ := meta.UnsafeGuessKindToResource(kind)
	return plural
}

// guessed returns the resource under which the tracker keeps gvr.
func (p plurals) guessed(gvr schema.GroupVersionResource) schema.GroupVersionResource {
	if guess, ok := p.guess[gvr]; ok {
		return guess
	}
	return gvr
}

func (p plurals) Get(
	gvr schema.GroupVersionResource, ns, name string, opts ...metav1.GetOptions,
) (runtime.Object, error) {
	return p.ObjectTracker.Get(p.guessed(gvr), ns, name, opts...)
}

func (p plurals) Create(
	gvr schema.GroupVersionResource, object runtime.Object, ns string, opts ...metav1.CreateOptions,
) error {
	return p.ObjectTracker.Create(p.guessed(gvr), object, ns, opts...)
}

func (p plurals) Update(
	gvr schema.GroupVersionResource, object runtime.Object, ns string, opts ...metav1.UpdateOptions,
) error {
	return p.ObjectTracker.Update(p.guessed(gvr), object, ns, opts...)
}

func (p plurals) Patch(
	gvr schema.GroupVersionResource, object runtime.Object, ns string, opts ...metav1.PatchOptions,
) error {
	return p.ObjectTracker.Patch(p.guessed(gvr), object, ns, opts...)
}

func (p plurals) List(
	gvr schema.GroupVersionResource, gvk schema.GroupVersionKind, ns string,
	opts ...metav1.ListOptions,
) (runtime.Object, error) {
	return p.ObjectTracker.List(p.guessed(gvr), gvk, ns, opts...)
}

func (p plurals) Delete(
	gvr schema.GroupVersionResource, ns, name string, opts ...metav1.DeleteOptions,
) error {
	return p.ObjectTracker.Delete(p.guessed(gvr), ns, name, opts...)
}

func (p plurals) Watch(
	gvr schema.GroupVersionResource, ns string, opts ...metav1.ListOptions,
) (watch.Interface, error) {
	return p.ObjectTracker.Watch(p.guessed(gvr), ns, opts...)
}
