package apiserver

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
)

// maxSuffixes is how often a name is generated, if there is an object of that name already.
const maxSuffixes = 8

// errModified is what a write based on an old version gets.
var errModified = errors.New("the object has been modified; please apply your changes to the" +
	" latest version and try again")

func (s *Server) create(r *Request) (*Response, error) {
	object := r.Body.DeepCopy()
	switch {
	case r.kind.review != "":
		object.Object["status"] = map[string]any{r.kind.review: true}
		return &Response{Code: http.StatusCreated, Object: object}, nil
	case r.Subresource != "":
		return nil, apierrors.NewMethodNotSupported(r.Resource.GroupResource(), r.Verb)
	}
	if err := r.decode(object); err != nil {
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
		if !apierrors.IsAlreadyExists(err) || !generate || try == maxSuffixes {
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
		if err := r.decode(object); err != nil {
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
	return s.replaceTracked(r, old, object)
}

// replaceTracked writes an object, or one with the replicas of a Scale, in place of old.
func (s *Server) replaceTracked(
	r *Request, old, object *unstructured.Unstructured,
) (*Response, error) {
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

// decode brings an object that a client has sent into the form in which it is kept.
func (r *Request) decode(object *unstructured.Unstructured) error {
	err := r.kind.decode(object)
	return withStatus(err, http.StatusBadRequest, metav1.StatusReasonBadRequest)
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
		return nil, apierrors.NewConflict(r.Resource.GroupResource(), r.Name, errModified)
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
	return apierrors.NewConflict(r.Resource.GroupResource(), r.Name, fmt.Errorf(
		"Precondition failed: UID in precondition: %v, UID in object meta: %v", meant, is))
}
