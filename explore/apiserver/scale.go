package apiserver

import (
	"math"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var scaleKind = schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}

// nested returns a field, such as status.phase.
func nested(object map[string]any, path string) (any, bool, error) {
	return unstructured.NestedFieldNoCopy(object, strings.Split(path, ".")...)
}

// scaleOf returns what the subresource scale shows of an object.
func (k *kind) scaleOf(object *unstructured.Unstructured) *unstructured.Unstructured {
	metadata := map[string]any{}
	for _, name := range []string{"name", "namespace", "uid", "resourceVersion",
		"creationTimestamp"} {
		if value, _, _ := unstructured.NestedFieldNoCopy(object.Object, "metadata", name); value != nil {
			metadata[name] = value
		}
	}
	spec, status := map[string]any{}, map[string]any{"replicas": int64(0)}
	at := func(path []string) (value any) {
		if path != nil {
			value, _, _ = unstructured.NestedFieldNoCopy(object.Object, path...)
		}
		return value
	}
	if replicas, ok := at(k.scale.replicas).(int64); ok && replicas != 0 {
		spec["replicas"] = replicas
	}
	if replicas, ok := at(k.scale.statusReplicas).(int64); ok {
		status["replicas"] = replicas
	}
	switch selector := at(k.scale.selector).(type) {
	case string:
		if selector != "" {
			status["selector"] = selector
		}
	case map[string]any:
		var parsed metav1.LabelSelector
		_ = runtime.DefaultUnstructuredConverter.FromUnstructured(selector, &parsed)
		if selector, err := metav1.LabelSelectorAsSelector(&parsed); err == nil {
			status["selector"] = selector.String()
		}
	}
	apiVersion, kind := scaleKind.ToAPIVersionAndKind()
	return &unstructured.Unstructured{Object: map[string]any{"kind": kind, "apiVersion": apiVersion,
		"metadata": metadata, "spec": spec, "status": status}}
}

// withScale returns a copy of an object with the replicas of a Scale, and its preconditions.
func (k *kind) withScale(old, scale *unstructured.Unstructured) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: deepCopy(old.Object)}
	replicas, _, _ := unstructured.NestedInt64(scale.Object, "spec", "replicas")
	_ = unstructured.SetNestedField(object.Object, replicas, k.scale.replicas...)
	if version := scale.GetResourceVersion(); version != "" {
		object.SetResourceVersion(version)
	}
	if uid := scale.GetUID(); uid != "" {
		object.SetUID(uid)
	}
	return object
}

func (p *scalePaths) specPath() []string {
	if p == nil {
		return nil
	}
	return p.replicas
}

func (p *scalePaths) statusPath() []string {
	if p == nil {
		return nil
	}
	return p.statusReplicas
}

// validateScale checks a number of replicas, if there is a path.
func (k *kind) validateScale(object *unstructured.Unstructured, path []string) field.ErrorList {
	if path == nil {
		return nil
	}
	name := field.NewPath("." + strings.Join(path, "."))
	replicas, _, err := unstructured.NestedInt64(object.Object, path...)
	switch {
	case err != nil:
		return field.ErrorList{field.Invalid(name, replicas, err.Error())}
	case replicas < 0:
		return field.ErrorList{field.Invalid(name, replicas, "should be a non-negative integer")}
	case replicas > math.MaxInt32:
		return field.ErrorList{field.Invalid(name, replicas,
			"should be less than or equal to 2147483647")}
	}
	return nil
}
