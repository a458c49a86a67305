package apiserver

import (
	"math"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var scaleKind = autoscalingv1.SchemeGroupVersion.WithKind("Scale")

// nested returns a field, such as status.phase.
func nested(object map[string]any, path string) (any, bool, error) {
	return unstructured.NestedFieldNoCopy(object, strings.Split(path, ".")...)
}

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
	scale.Spec.Replicas, scale.Status.Replicas = number(k.scale.replicas), number(k.scale.statusReplicas)
	selector, _, _ := nested(object.Object, k.scale.selector)
	switch selector := selector.(type) {
	case string:
		scale.Status.Selector = selector
	case map[string]any:
		var parsed metav1.LabelSelector
		_ = converter.FromUnstructured(selector, &parsed)
		if selector, err := metav1.LabelSelectorAsSelector(&parsed); err == nil {
			scale.Status.Selector = selector.String()
		}
	}
	content, _ := converter.ToUnstructured(scale)
	result := &unstructured.Unstructured{Object: content}
	result.SetGroupVersionKind(scaleKind)
	return result
}

// withScale returns a copy of an object with the replicas of a Scale, and its preconditions.
func (k *kind) withScale(old, scale *unstructured.Unstructured) *unstructured.Unstructured {
	object := old.DeepCopy()
	replicas, _, _ := unstructured.NestedInt64(scale.Object, "spec", "replicas")
	_ = unstructured.SetNestedField(object.Object, replicas, strings.Split(k.scale.replicas, ".")...)
	if version := scale.GetResourceVersion(); version != "" {
		object.SetResourceVersion(version)
	}
	if uid := scale.GetUID(); uid != "" {
		object.SetUID(uid)
	}
	return object
}

// validateScale checks a number of replicas.
func validateScale(object *unstructured.Unstructured, path string) field.ErrorList {
	replicas, _, err := unstructured.NestedInt64(object.Object, strings.Split(path, ".")...)
	message := ""
	switch {
	case err != nil:
		message = err.Error()
	case replicas < 0:
		message = "should be a non-negative integer"
	case replicas > math.MaxInt32:
		message = "should be less than or equal to 2147483647"
	default:
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("."+path), replicas, message)}
}
