package suite

import (
	"context"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// Untyped returns the objects of any kind in n, for tests that go through a table of kinds.
func Untyped(
	n *Namespace, kind string, resource schema.GroupVersionResource,
) Objects[*unstructured.Unstructured] {
	client := dynamic.NewForConfigOrDie(Cluster).Resource(resource).Namespace(n.Name)
	return NewObjects(n.T, kind, untyped{client})
}

// SameAs returns a check for an object that has the spec or the data of before, and its labels.
func SameAs(before *unstructured.Unstructured) func(*unstructured.Unstructured) bool {
	return func(object *unstructured.Unstructured) bool {
		return reflect.DeepEqual(object.Object["data"], before.Object["data"]) &&
			reflect.DeepEqual(object.Object["spec"], before.Object["spec"]) &&
			reflect.DeepEqual(object.GetLabels(), before.GetLabels())
	}
}

// untyped is a Client of any kind: one without subresources.
type untyped struct{ client dynamic.ResourceInterface }

func (u untyped) Create(
	ctx context.Context, object *unstructured.Unstructured, options metav1.CreateOptions,
) (*unstructured.Unstructured, error) {
	return u.client.Create(ctx, object, options)
}

func (u untyped) Get(
	ctx context.Context, name string, options metav1.GetOptions,
) (*unstructured.Unstructured, error) {
	return u.client.Get(ctx, name, options)
}

func (u untyped) Update(
	ctx context.Context, object *unstructured.Unstructured, options metav1.UpdateOptions,
) (*unstructured.Unstructured, error) {
	return u.client.Update(ctx, object, options)
}
