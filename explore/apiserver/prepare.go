package apiserver

import (
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// prepare keeps what a client cannot change with this request, and counts the generation.
func (k *kind) prepare(r *Request, object, old *unstructured.Unstructured) {
	if k.status && r.Subresource == "status" {
		k.prepareStatus(object, old)
		return
	}
	if k.status {
		keep(object.Object, old.Object, "status")
	}
	if k.is("namespaces") && r.Subresource == "" {
		keepIn(object, old, "spec", "finalizers")
	}
	generation := old.GetGeneration()
	if k.generation && k.specChanged(object.Object, old.Object) {
		generation++
	}
	object.SetGeneration(generation)
}

// prepareStatus keeps everything but the status. Built-in kinds also let the metadata change.
func (k *kind) prepareStatus(object, old *unstructured.Unstructured) {
	content := maps.Clone(old.Object)
	keep(content, object.Object, "status")
	if k.custom == nil {
		content["metadata"] = object.Object["metadata"]
	} else {
		managed := object.GetManagedFields()
		content["metadata"] = runtime.DeepCopyJSON(old.Object["metadata"].(map[string]any))
		object.Object = content
		object.SetManagedFields(managed)
	}
	object.Object = content
	object.SetGeneration(old.GetGeneration())
	if k.is("deployments") {
		object.SetLabels(old.GetLabels())
	}
}

// specChanged reports whether the generation counts the difference.
func (k *kind) specChanged(object, old map[string]any) bool {
	if _, hasSpec := old["spec"]; hasSpec && k.custom == nil {
		annotations, _, _ := nested(object, "metadata.annotations")
		before, _, _ := nested(old, "metadata.annotations")
		return !reflect.DeepEqual(object["spec"], old["spec"]) ||
			k.is("deployments") && !reflect.DeepEqual(annotations, before)
	}
	for _, content := range []map[string]any{object, old} {
		for name := range content {
			if name != "metadata" && !reflect.DeepEqual(object[name], old[name]) {
				return true
			}
		}
	}
	return false
}

// keepMetadata keeps what the server owns.
func keepMetadata(object, old *unstructured.Unstructured) {
	in := object.Object["metadata"].(map[string]any)
	from := old.Object["metadata"].(map[string]any)
	setDefaults(in, map[string]any{"uid": from["uid"]})
	keep(in, from, "creationTimestamp")
	if from["deletionTimestamp"] != nil {
		keep(in, from, "deletionTimestamp")
		setDefaults(in, map[string]any{
			"deletionGracePeriodSeconds": from["deletionGracePeriodSeconds"]})
	}
}

// keep sets a field to what it was.
func keep(object, old map[string]any, name string) {
	if value, ok := old[name]; ok {
		object[name] = value
	} else {
		delete(object, name)
	}
}

func keepIn(object, old *unstructured.Unstructured, parent, name string) {
	from, _ := old.Object[parent].(map[string]any)
	in, ok := object.Object[parent].(map[string]any)
	if !ok {
		in = map[string]any{}
		object.Object[parent] = in
	}
	keep(in, from, name)
}

// validate returns what is wrong with an object, that is created if old is nil.
func (k *kind) validate(object, old *unstructured.Unstructured, subresource string) field.ErrorList {
	path := field.NewPath("metadata")
	var errs field.ErrorList
	if old == nil {
		errs = validation.ValidateObjectMetaAccessor(object, k.namespaced, k.validName(), path)
	} else {
		errs = validation.ValidateObjectMetaAccessorUpdate(object, old, path)
	}
	if k.custom != nil {
		errs = k.custom.validate(k, object, old, subresource, errs)
	}
	return errs
}
