package apiserver

import (
	"maps"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func metadataOf(object *unstructured.Unstructured) map[string]any {
	return object.Object["metadata"].(map[string]any)
}

// view returns an object that is stored in the version of a kind, or nil if there is none.
func (k *kind) view(object *unstructured.Unstructured) *unstructured.Unstructured {
	if k.gvr == k.storage {
		return object
	}
	return converted(object, k.gvk.GroupVersion().String())
}

// converted returns an object in another version, without changing its fields.
func converted(object *unstructured.Unstructured, apiVersion string) *unstructured.Unstructured {
	if object == nil || object.GetAPIVersion() == apiVersion {
		return object
	}
	content := maps.Clone(object.Object)
	content["apiVersion"] = apiVersion
	return &unstructured.Unstructured{Object: content}
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
	content, err := converter.ToUnstructured(value)
	if err != nil {
		panic(err) // only of a type that is none of an API
	}
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
