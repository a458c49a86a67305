package apiserver

import (
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func metadataOf(object *unstructured.Unstructured) map[string]any {
	return object.Object["metadata"].(map[string]any)
}

// sameObject reports whether two objects differ in nothing but times of managed fields.
func sameObject(a, b *unstructured.Unstructured) bool {
	return reflect.DeepEqual(a.Object, b.Object) ||
		len(a.GetManagedFields()) > 0 && reflect.DeepEqual(withoutTimes(a), withoutTimes(b))
}

func withoutTimes(object *unstructured.Unstructured) map[string]any {
	object = object.DeepCopy()
	entries := object.GetManagedFields()
	for i := range entries {
		entries[i].Time = nil
	}
	object.SetManagedFields(entries)
	return object.Object
}

// nested returns a field, such as status.phase. Its path may begin with a dot.
func nested(object map[string]any, path string) (any, bool, error) {
	return unstructured.NestedFieldNoCopy(object, split(path)...)
}

func split(path string) []string { return strings.Split(strings.TrimPrefix(path, "."), ".") }

// asObject returns a value of a Go type as an object of a kind.
func asObject(gvk schema.GroupVersionKind, value any) *unstructured.Unstructured {
	content := must(converter.ToUnstructured(value)) // it fails only for a type that is none of an API
	object := &unstructured.Unstructured{Object: content}
	object.SetGroupVersionKind(gvk)
	return object
}

// newObject returns an object of a kind, with nothing but what each has.
func (k *kind) newObject() *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{}}}
	object.SetGroupVersionKind(k.gvk)
	return object
}
