package apiserver

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
)

func (s *Server) create(r *Request) (*Response, error) {
	object := r.Body.DeepCopy()
	switch {
	case r.kind.review != "":
		object.Object["status"] = map[string]any{r.kind.review: true}
		return &Response{Code: http.StatusCreated, Object: object}, nil
	case r.Subresource != "":
		return nil, apierrors.NewMethodNotSupported(r.Resource.GroupResource(), r.Verb)
	}
	if err := r.kind.decode(object); err != nil {
		return nil, err
	}
	return s.createObject(r, object)
}

// createObject creates an object, which it changes.
func (s *Server) createObject(r *Request, object *unstructured.Unstructured) (*Response, error) {
	if err := s.admit(r, object); err != nil {
		return nil, err
	}
	rest.WipeObjectMetaSystemFields(object)
	if r.PatchType != types.ApplyYAMLPatchType {
		object.SetManagedFields(nil)
	}
	generate := object.GetName() == "" && object.GetGenerateName() != ""
	for try := 1; ; try++ {
		if generate { // always the next name of the same sequence
			s.suffixes++
			suffix := rand.SafeEncodeString(fmt.Sprintf("%05d", s.suffixes*61803%100000))
			object.SetName(object.GetGenerateName() + suffix)
		}
		created, err := s.createNamed(r, object)
		if !apierrors.IsAlreadyExists(err) || !generate || try == 8 { // tries, as in Kubernetes
			return created, err
		}
	}
}

// admit refuses a create in the wrong namespace, or in one that is not there or is being deleted.
func (s *Server) admit(r *Request, object *unstructured.Unstructured) error {
	if r.kind.namespaced && r.Namespace == "" {
		return apierrors.NewBadRequest("an empty namespace may not be set during creation")
	}
	err := rest.EnsureObjectNamespaceMatchesRequestNamespace(r.Namespace, object)
	if err != nil || r.Namespace == "" {
		return err
	}
	namespace := s.table(s.kinds[namespaces]).objects[keyOf("", r.Namespace)]
	if namespace == nil {
		return apierrors.NewNotFound(corev1.Resource("namespaces"), r.Namespace)
	}
	if namespace.GetDeletionTimestamp() == nil {
		return nil
	}
	forbidden := apierrors.NewForbidden(r.Resource.GroupResource(), object.GetName(), fmt.Errorf(
		"unable to create new content in namespace %s because it is being terminated", r.Namespace))
	forbidden.ErrStatus.Details.Causes = []metav1.StatusCause{{
		Type: corev1.NamespaceTerminatingCause, Field: "metadata.namespace",
		Message: fmt.Sprintf("namespace %s is being terminated", r.Namespace)}}
	return forbidden
}

// createNamed creates an object that has a name.
func (s *Server) createNamed(r *Request, object *unstructured.Unstructured) (*Response, error) {
	k, version := r.kind, object.GetResourceVersion()
	metadata := object.Object["metadata"].(map[string]any)
	s.setIdentity(metadata)
	if k.generation {
		metadata["generation"] = int64(1)
	}
	if k.status {
		delete(object.Object, "status")
		_ = k.canonical(object.Object) // sets that of a new object
	}
	if k.is("namespaces") {
		object.Object["spec"] = map[string]any{"finalizers": []any{string(corev1.FinalizerKubernetes)}}
	}
	if errs := k.validate(object, nil, ""); len(errs) > 0 {
		return nil, apierrors.NewInvalid(k.gvk.GroupKind(), object.GetName(), errs)
	}
	if version != "" && r.Verb == "create" && !r.DryRun {
		return nil, errors.New("resourceVersion should not be set on objects to be created")
	}
	if old := s.table(k).objects[keyOf(r.Namespace, object.GetName())]; old != nil {
		err := apierrors.NewAlreadyExists(r.Resource.GroupResource(), object.GetName())
		if old.GetDeletionTimestamp() != nil {
			err.ErrStatus.Message = "object is being deleted: " + err.ErrStatus.Message
		}
		return nil, err
	}
	if !r.DryRun {
		object = k.view(s.commit(r, nil, object, false))
	}
	return &Response{Code: http.StatusCreated, Object: object}, nil
}

// setIdentity sets what makes an object a new one.
func (s *Server) setIdentity(metadata map[string]any) {
	s.uids++
	metadata["uid"] = fmt.Sprintf("00000000-0000-4000-8000-%012x", s.uids)
	metadata["creationTimestamp"] = time.Now().UTC().Format(time.RFC3339)
}

func (s *Server) update(r *Request) (*Response, error) {
	object, old := r.Body.DeepCopy(), s.existing(r)
	if r.Subresource != "scale" {
		if err := r.kind.decode(object); err != nil {
			return nil, err
		}
	}
	if err := r.checkName(object); err != nil {
		return nil, err
	}
	switch uid := object.GetUID(); {
	case old == nil && (!r.kind.is(createdByUpdate) || r.Subresource != ""):
		return nil, apierrors.NewNotFound(r.Resource.GroupResource(), r.Name)
	case old == nil && uid == "":
		return s.createObject(r, object)
	case old == nil:
		return nil, r.conflict(uid, "")
	case uid != "" && uid != old.GetUID():
		return nil, r.conflict(uid, old.GetUID())
	}
	if r.Subresource == "scale" {
		object = r.kind.withScale(old, object)
	}
	s.track(r, object, old)
	return s.replace(r, old, object)
}

// checkName refuses an object that is not of the name that the URL has.
func (r *Request) checkName(object *unstructured.Unstructured) error {
	if name := object.GetName(); name != r.Name {
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name"+
			" on the URL (%s)", name, r.Name))
	}
	return nil
}

// replace writes an object in place of old. It changes the object.
func (s *Server) replace(r *Request, old, object *unstructured.Unstructured) (*Response, error) {
	k := r.kind
	err := rest.EnsureObjectNamespaceMatchesRequestNamespace(r.Namespace, object)
	if err != nil {
		return nil, err
	}
	switch version := object.GetResourceVersion(); {
	case version == "" || version == "0":
		if k.custom != nil || k.is(conditional) {
			return nil, apierrors.NewInvalid(schema.GroupKind{Group: r.Resource.Group,
				Kind: r.Resource.Resource}, r.Name, field.ErrorList{field.Invalid(
				field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update")})
		}
		object.SetResourceVersion(old.GetResourceVersion())
	case version != old.GetResourceVersion():
		return nil, apierrors.NewConflict(r.Resource.GroupResource(), r.Name, errors.New("the object has"+
			" been modified; please apply your changes to the latest version and try again"))
	}
	k.prepare(r, object, old)
	keepMetadata(object, old)
	if errs := k.validate(object, old, r.Subresource); len(errs) > 0 {
		return nil, apierrors.NewInvalid(k.gvk.GroupKind(), r.Name, errs)
	}
	switch {
	case r.DryRun:
	case old.GetDeletionTimestamp() != nil && len(object.GetFinalizers()) == 0 &&
		!hasNamespaceFinalizers(k, object):
		s.commit(r, old, old.DeepCopy(), true)
	case sameObject(object, old):
		object = old
	default:
		object = k.view(s.commit(r, old, object, false))
	}
	return r.found(object), nil
}

// conflict says, in the words of the API server, that an object is not the one that was meant.
func (r *Request) conflict(meant, is types.UID) error {
	//nolint:staticcheck // the words of the API server
	return apierrors.NewConflict(r.Resource.GroupResource(), r.Name, fmt.Errorf(
		"Precondition failed: UID in precondition: %v, UID in object meta: %v", meant, is))
}

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
