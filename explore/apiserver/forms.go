package apiserver

import (
	"encoding/json"
	"maps"
	"math"
	"reflect"
	"strconv"
	"strings"
	"sync"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var (
	converter    = runtime.DefaultUnstructuredConverter
	unmarshaler  = reflect.TypeFor[json.Unmarshaler]()
	metadataType = reflect.TypeFor[metav1.ObjectMeta]()
	structFields sync.Map // the fields of a Go struct by their names: map[string]reflect.Type
)

// canonical brings an object into the form that it has after it was read into a Go type and written
// from there, with defaults. Fields that this version of the type does not have stay, but for those
// of the metadata. Of a custom resource, it is the metadata only.
func (k *kind) canonical(object map[string]any) error {
	metadata, _ := object["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata, err := throughType(metadata, metadataType)
	if err != nil {
		return err
	}
	object["metadata"] = metadata
	if k.goType == nil {
		return nil
	}
	out, err := throughType(object, k.goType)
	if err != nil {
		return err
	}
	finish(object, out, k.goType)
	clear(object)
	maps.Copy(object, out)
	return nil
}

// throughType reads a value into a Go type, and returns what that has of it.
func throughType(value map[string]any, t reflect.Type) (map[string]any, error) {
	typed := reflect.New(t).Interface()
	if err := converter.FromUnstructured(value, typed); err != nil {
		return nil, err
	}
	return converter.ToUnstructured(typed)
}

// finish adds what was in a value but not in its Go type, and the defaults.
func finish(in, out any, t reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if reflect.PointerTo(t).Implements(unmarshaler) {
		return
	}
	switch out := out.(type) {
	case []any:
		list, _ := in.([]any)
		for i, element := range out {
			if i < len(list) {
				finish(list[i], element, t.Elem())
			}
		}
	case map[string]any:
		content, _ := in.(map[string]any)
		if t.Kind() == reflect.Map {
			for name, element := range out {
				finish(content[name], element, t.Elem())
			}
			return
		}
		fields := fieldsOf(t)
		for name, value := range content {
			if fields[name] == nil {
				out[name] = value
			}
		}
		if set := otherDefaults[t]; set != nil {
			set(out)
		}
		setDefaults(out, defaults()[t])
		for name, value := range out {
			if field := fields[name]; field != nil {
				finish(content[name], value, field)
			}
		}
	}
}

// fieldsOf returns the types of a struct's fields by their names in JSON.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	if known, ok := structFields.Load(t); ok {
		return known.(map[string]reflect.Type)
	}
	fields := map[string]reflect.Type{}
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Anonymous && name == "":
			maps.Copy(fields, fieldsOf(field.Type))
		case name != "-" && field.IsExported():
			fields[name] = field.Type
		}
	}
	structFields.Store(t, fields)
	return fields
}

// view returns an object that is stored in the version of a kind, or nil if there is none.
func (k *kind) view(object *unstructured.Unstructured) *unstructured.Unstructured {
	return converted(object, k.gvk.GroupVersion().String())
}

// converted returns an object in another version.
func converted(object *unstructured.Unstructured, apiVersion string) *unstructured.Unstructured {
	if object == nil || object.GetAPIVersion() == apiVersion {
		return object
	}
	content := maps.Clone(object.Object)
	if isCore := apiVersion == "v1"; isCore || apiVersion == "events.k8s.io/v1" {
		for from, to := range eventFields {
			if isCore {
				from, to = to, from
			}
			if value, ok := content[from]; ok {
				delete(content, from)
				content[to] = value
			}
		}
	}
	content["apiVersion"] = apiVersion
	return &unstructured.Unstructured{Object: content}
}

// eventFields are the fields of an Event whose names differ in v1 and in events.k8s.io/v1.
var eventFields = map[string]string{"involvedObject": "regarding", "message": "note",
	"source": "deprecatedSource", "firstTimestamp": "deprecatedFirstTimestamp",
	"lastTimestamp": "deprecatedLastTimestamp", "count": "deprecatedCount",
	"reportingComponent": "reportingController"}

// withRevision returns an object that says it is of this revision.
func withRevision(object *unstructured.Unstructured, revision int64) *unstructured.Unstructured {
	content := maps.Clone(object.Object)
	content["metadata"] = maps.Clone(content["metadata"].(map[string]any))
	object = &unstructured.Unstructured{Object: content}
	object.SetResourceVersion(strconv.FormatInt(revision, 10))
	return object
}

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
	scale.Spec.Replicas = number(k.scale.replicas)
	scale.Status.Replicas = number(k.scale.statusReplicas)
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
