package apiserver

import (
	"cmp"
	"maps"
	"reflect"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

var scaleKind = autoscalingv1.SchemeGroupVersion.WithKind("Scale")

// nested returns a field, such as status.phase. Its path may begin with a dot.
func nested(object map[string]any, path string) (any, bool, error) {
	return unstructured.NestedFieldNoCopy(object, split(path)...)
}

func split(path string) []string { return strings.Split(strings.TrimPrefix(path, "."), ".") }

// scaleOf returns what the subresource scale shows of an object.
func (k *kind) scaleOf(object *unstructured.Unstructured) *unstructured.Unstructured {
	scale := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: object.GetName(),
		Namespace: object.GetNamespace(), UID: object.GetUID(),
		ResourceVersion: object.GetResourceVersion(), CreationTimestamp: object.GetCreationTimestamp()}}
	number := func(path string) int32 {
		value, _, _ := nested(object.Object, path)
		replicas, _ := value.(int64)
		return int32(replicas)
	}
	scale.Spec.Replicas = number(k.scale.SpecReplicasPath)
	scale.Status.Replicas = number(k.scale.StatusReplicasPath)
	if path := k.scale.LabelSelectorPath; path != nil {
		selector, _, _ := nested(object.Object, *path)
		scale.Status.Selector, _ = selector.(string)
		if selector, ok := selector.(map[string]any); ok {
			parsed := &metav1.LabelSelector{}
			_ = converter.FromUnstructured(selector, parsed)
			if selector, err := metav1.LabelSelectorAsSelector(parsed); err == nil {
				scale.Status.Selector = selector.String()
			}
		}
	}
	return asObject(scaleKind, scale)
}

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

// withScale returns a copy of an object with the replicas of a Scale, and its preconditions.
func (k *kind) withScale(old, scale *unstructured.Unstructured) *unstructured.Unstructured {
	object := old.DeepCopy()
	replicas, _, _ := unstructured.NestedInt64(scale.Object, "spec", "replicas")
	_ = unstructured.SetNestedField(object.Object, replicas, split(k.scale.SpecReplicasPath)...)
	object.SetResourceVersion(cmp.Or(scale.GetResourceVersion(), object.GetResourceVersion()))
	object.SetUID(cmp.Or(scale.GetUID(), object.GetUID()))
	return object
}
