package apiserver

import (
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
		keep(object.Object, old.Object, "spec") // which has only finalizers
	}
	generation := old.GetGeneration()
	if k.generation && k.specChanged(object.Object, old.Object) {
		generation++
	}
	object.SetGeneration(generation)
}

// prepareStatus keeps everything but the status. Built-in kinds also let the metadata change.
func (k *kind) prepareStatus(object, old *unstructured.Unstructured) {
	content, metadata := maps.Clone(old.Object), object.Object["metadata"].(map[string]any)
	before := old.Object["metadata"].(map[string]any)
	keep(content, object.Object, "status")
	if k.custom != nil {
		managed := metadata
		metadata = maps.Clone(before)
		keep(metadata, managed, "managedFields")
	}
	if k.is("deployments") {
		keep(metadata, before, "labels")
	}
	keep(metadata, before, "generation")
	content["metadata"], object.Object = metadata, content
}

// specChanged reports whether the generation counts the difference.
func (k *kind) specChanged(object, old map[string]any) bool {
	if _, hasSpec := old["spec"]; hasSpec && k.custom == nil {
		annotations, _, _ := nested(object, "metadata.annotations")
		before, _, _ := nested(old, "metadata.annotations")
		return !reflect.DeepEqual(object["spec"], old["spec"]) ||
			k.is("deployments") && !reflect.DeepEqual(annotations, before)
	}
	object, old = maps.Clone(object), maps.Clone(old)
	delete(object, "metadata")
	delete(old, "metadata")
	return !reflect.DeepEqual(object, old)
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
