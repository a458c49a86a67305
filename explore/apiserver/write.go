package apiserver

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
)

func (s *Server) write(r *Request) (*Response, error) {
	k, old, object := r.kind, s.existing(r), r.Body.DeepCopy()
	var err error
	switch {
	case r.isApply():
		object, old, err = r.applied(old)
	case r.Verb == "patch":
		object, err = s.patched(r, old)
	default:
		err = badRequest(r.decode(object))
	}
	if err == nil {
		err = rest.EnsureObjectNamespaceMatchesRequestNamespace(r.Namespace, object)
	}
	if err != nil {
		return nil, err
	}
	switch name, uid := object.GetName(), object.GetUID(); {
	case r.Verb == "create":
		return s.create(r, object)
	case name != r.Name:
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the"+
			" name on the URL (%s)", name, r.Name))
	case old == nil && r.Verb == "update" && (!k.CreatedByUpdate || r.Subresource != ""):
		return nil, r.notFound()
	case uid != "" && (old == nil || r.Verb == "update" && uid != old.GetUID()):
		return nil, r.conflict("no object has the UID " + string(uid))
	case old == nil:
		return s.create(r, object)
	}
	if !r.isApply() {
		r.track(object, old)
	}
	return s.replace(r, old, object)
}

// create creates an object, which it changes.
func (s *Server) create(r *Request, object *unstructured.Unstructured) (*Response, error) {
	if err := s.admit(r, object); err != nil {
		return nil, err
	}
	s.mutate(r, object)
	k, metadata := r.kind, metadataOf(object)
	name := protection[k.gvr.Resource]
	if name != "" && k.custom == nil && !slices.Contains(object.GetFinalizers(), name) {
		object.SetFinalizers(append(object.GetFinalizers(), name))
	}
	rest.WipeObjectMetaSystemFields(object)
	if !r.isApply() {
		delete(metadata, "managedFields")
	}
	if prefix := object.GetGenerateName(); object.GetName() == "" && prefix != "" {
		s.suffixes++ // always the same sequence; a name comes again after 100,000 others
		suffix := rand.SafeEncodeString(fmt.Sprintf("%05d", s.suffixes*61803%100000))
		object.SetName(prefix[:min(len(prefix), names.MaxGeneratedNameLength)] + suffix)
	}
	s.setIdentity(k, metadata)
	if err := k.finishWrite(r, object, nil); err != nil {
		return nil, err
	}
	if object.GetResourceVersion() != "" && r.Verb == "create" && !r.isDryRun() {
		return nil, errors.New("resourceVersion should not be set on objects to be created")
	}
	if s.table(k).objects[keyOf(r.Namespace, object.GetName())] != nil {
		return nil, apierrors.NewAlreadyExists(r.Resource.GroupResource(), object.GetName())
	}
	if !r.isDryRun() {
		s.commit(r, nil, object, false)
	}
	return &Response{Code: http.StatusCreated, Object: object}, nil
}

// finishWrite finishes an object that is new, or that is to replace another one, and validates it.
func (k *kind) finishWrite(r *Request, object, old *unstructured.Unstructured) error {
	if k.real != nil {
		return k.real.Finish(r, object, old)
	}
	switch {
	case old != nil:
		k.prepare(r.Subresource, object, old)
	case k.is("namespaces"):
		object.Object["spec"] = map[string]any{"finalizers": []any{string(corev1.FinalizerKubernetes)}}
		fallthrough
	case k.has("status"):
		delete(object.Object, "status")
		_ = k.canonical(object.Object) // sets that of a new object
	}
	if errs := k.validate(object, old, r.Subresource); len(errs) > 0 {
		return apierrors.NewInvalid(k.gvk.GroupKind(), object.GetName(), errs)
	}
	return nil
}

// protection are the finalizers that admission sets, so that nothing goes that is in use.
var protection = map[string]string{"persistentvolumeclaims": "kubernetes.io/pvc-protection",
	"persistentvolumes": "kubernetes.io/pv-protection", "volumeattributesclasses": "kubernetes.io/vac-protection"}

// admit refuses a create in a namespace that is not there or is being deleted.
func (s *Server) admit(r *Request, object *unstructured.Unstructured) error {
	switch {
	case r.Namespace != "":
	case r.kind.Namespaced:
		return apierrors.NewBadRequest("an empty namespace may not be set during creation")
	default:
		return nil
	}
	namespace := s.table(s.kinds[namespaces]).objects[keyOf("", r.Namespace)]
	if namespace == nil {
		return apierrors.NewNotFound(namespaces.GroupResource(), r.Namespace)
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

// mutate lets admission change an object.
func (s *Server) mutate(r *Request, object *unstructured.Unstructured) {
	if s.Admit != nil {
		s.Admit(r, object)
		_ = r.kind.canonical(object.Object)
	}
}

// setIdentity sets what makes an object a new one.
func (s *Server) setIdentity(k *kind, metadata map[string]any) {
	s.uids++
	metadata["uid"] = fmt.Sprintf("00000000-0000-4000-8000-%012x", s.uids)
	metadata["creationTimestamp"] = time.Now().UTC().Format(time.RFC3339)
	if k.Generation {
		metadata["generation"] = int64(1)
	}
}

// replace writes an object in place of old. It changes the object.
func (s *Server) replace(r *Request, old, object *unstructured.Unstructured) (*Response, error) {
	k := r.kind
	s.mutate(r, object)
	switch version := object.GetResourceVersion(); {
	case (version == "" || version == "0") && k.Conditional:
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: r.Resource.Group,
			Kind: r.Resource.Resource}, r.Name, field.ErrorList{field.Invalid(
			field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update")})
	case version == "" || version == "0":
		object.SetResourceVersion(old.GetResourceVersion())
	case version != old.GetResourceVersion():
		return nil, r.conflict("the object has been modified; please apply your changes to the latest" +
			" version and try again")
	}
	if err := k.finishWrite(r, object, old); err != nil {
		return nil, err
	}
	switch {
	case r.isDryRun():
	case old.GetDeletionTimestamp() != nil && len(object.GetFinalizers()) == 0 &&
		!hasNamespaceFinalizers(k, object):
		s.commit(r, old, old.DeepCopy(), true)
	case sameObject(object, old):
		object = old
	default:
		s.commit(r, old, object, false)
	}
	return &Response{Code: http.StatusOK, Object: object}, nil
}

// prepare keeps what the server owns, and what a client cannot change with this subresource. It
// counts the generation.
func (k *kind) prepare(subresource string, object, old *unstructured.Unstructured) {
	metadata, before := metadataOf(object), metadataOf(old)
	switch {
	case subresource == "status" && k.custom != nil:
		content, managed := maps.Clone(old.Object), metadata
		keep(content, object.Object, "status")
		metadata = maps.Clone(before)
		keep(metadata, managed, "managedFields")
		content["metadata"], object.Object = metadata, content
	case subresource == "status":
		keep(object.Object, old.Object, "spec")
		if k.is("deployments") {
			keep(metadata, before, "labels")
		}
	case k.has("status"):
		keep(object.Object, old.Object, "status")
		if k.is("namespaces") && subresource == "" {
			keep(object.Object, old.Object, "spec") // which has only finalizers
		}
	}
	keep(metadata, before, "generation")
	if k.Generation && subresource != "status" && k.specChanged(object.Object, old.Object) {
		object.SetGeneration(old.GetGeneration() + 1)
	}
	keep(metadata, before, "creationTimestamp")
	setDefaults(metadata, map[string]any{"uid": before["uid"],
		"deletionGracePeriodSeconds": before["deletionGracePeriodSeconds"]})
	if before["deletionTimestamp"] != nil {
		keep(metadata, before, "deletionTimestamp")
	}
}

// specChanged reports whether the generation counts the difference.
func (k *kind) specChanged(object, old map[string]any) bool {
	annotations, _, _ := nested(object, "metadata.annotations")
	before, _, _ := nested(old, "metadata.annotations")
	object, old = maps.Clone(object), maps.Clone(old)
	delete(object, "metadata")
	delete(old, "metadata")
	return !reflect.DeepEqual(object, old) ||
		k.is("deployments") && !reflect.DeepEqual(annotations, before)
}

func keep(object, old map[string]any, name string) {
	if value, ok := old[name]; ok {
		object[name] = value
	} else {
		delete(object, name)
	}
}

// validate returns what is wrong with an object, that is created if old is nil.
func (k *kind) validate(object, old *unstructured.Unstructured, subresource string) field.ErrorList {
	metadata, validName := field.NewPath("metadata"), validation.NameIsDNSSubdomain
	switch {
	case k.gvk.Group == "rbac.authorization.k8s.io":
		validName = path.ValidatePathSegmentName //nolint:staticcheck // as the API server
	case k.is("namespaces"), k.is("services"):
		validName = validation.NameIsDNSLabel
	}
	var errs field.ErrorList
	if old == nil {
		errs = validation.ValidateObjectMetaAccessor(object, k.Namespaced, validName, metadata)
	} else {
		errs = validation.ValidateObjectMetaAccessorUpdate(object, old, metadata)
	}
	if k.custom != nil {
		errs = k.validateCustom(object, old, subresource == "status", errs)
	}
	return errs
}
