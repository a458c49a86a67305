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
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxSuffixes is how often a name is generated, if there is an object of that name already.
const maxSuffixes = 8

// errModified is what a write based on an old version gets.
var errModified = errors.New("the object has been modified; please apply your changes to the" +
	" latest version and try again")

func (s *Server) create(r *Request) (*Response, error) {
	if r.kind.review {
		return review(r), nil
	}
	if r.Subresource != "" {
		return nil, apierrors.NewMethodNotSupported(r.Resource.GroupResource(), r.Verb)
	}
	object := &unstructured.Unstructured{Object: deepCopy(r.Body.Object)}
	if err := r.decode(object); err != nil {
		return nil, err
	}
	return s.createObject(r, object)
}

// createObject creates an object, which it changes.
func (s *Server) createObject(r *Request, object *unstructured.Unstructured) (*Response, error) {
	content := object.Object
	if err := s.admit(r, object); err != nil {
		return nil, err
	}
	for _, name := range []string{"creationTimestamp", "uid", "deletionTimestamp", "selfLink",
		"deletionGracePeriodSeconds"} {
		unstructured.RemoveNestedField(content, "metadata", name)
	}
	if r.PatchType != types.ApplyYAMLPatchType {
		unstructured.RemoveNestedField(content, "metadata", "managedFields")
	}
	generate := object.GetName() == "" && object.GetGenerateName() != ""
	for try := 1; ; try++ {
		if generate {
			object.SetName(object.GetGenerateName() + s.suffix())
		}
		created, err := s.createNamed(r, object)
		if !apierrors.IsAlreadyExists(err) || !generate || try == maxSuffixes {
			return created, err
		}
	}
}

// admit refuses a create in the wrong namespace, or in one that is not there or is being deleted.
func (s *Server) admit(r *Request, object *unstructured.Unstructured) error {
	if err := setNamespace(r, object); err != nil || r.Namespace == "" {
		return err
	}
	namespace := s.namespace(r.Namespace)
	if namespace == nil {
		return apierrors.NewNotFound(corev1.Resource("namespaces"), r.Namespace)
	}
	if namespace.GetDeletionTimestamp() == nil {
		return nil
	}
	err := apierrors.NewForbidden(r.Resource.GroupResource(), object.GetName(), fmt.Errorf(
		"unable to create new content in namespace %s because it is being terminated", r.Namespace))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: corev1.NamespaceTerminatingCause, Field: "metadata.namespace",
		Message: fmt.Sprintf("namespace %s is being terminated", r.Namespace)})
	return err
}

func (s *Server) namespace(name string) *unstructured.Unstructured {
	return s.table(s.kinds[namespaces]).objects[name]
}

// setNamespace sets the object's namespace to that of the request.
func setNamespace(r *Request, object *unstructured.Unstructured) error {
	switch namespace := object.GetNamespace(); {
	case r.kind.namespaced && r.Namespace == "":
		return apierrors.NewBadRequest("an empty namespace may not be set during creation")
	case !r.kind.namespaced || namespace == "":
		object.SetNamespace(r.Namespace)
	case namespace != r.Namespace:
		return apierrors.NewBadRequest("the namespace of the provided object does not match the" +
			" namespace sent on the request")
	}
	return nil
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
		if initial := initialStatus[k.gvr]; initial != nil {
			object.Object["status"] = deepCopy(initial)
		} else if k.goType != nil {
			status, _ := k.goType.FieldByName("Status")
			object.Object["status"], _ = throughType(nil, status.Type)
		}
	}
	if k.is("namespaces") {
		object.Object["spec"] = map[string]any{"finalizers": []any{string(corev1.FinalizerKubernetes)}}
		setNameLabel(object.Object) // if the name is generated
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
		object = s.view(k, s.commit(r, nil, object, false))
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
	object, old := &unstructured.Unstructured{Object: deepCopy(r.Body.Object)}, s.existing(r)
	if r.Subresource != "scale" {
		if err := r.decode(object); err != nil {
			return nil, err
		}
	}
	if name := object.GetName(); name != r.Name {
		return nil, wrongName(r, name)
	}
	switch uid := object.GetUID(); {
	case old == nil && (!r.kind.is(createdByUpdate) || r.Subresource != ""):
		return nil, apierrors.NewNotFound(r.Resource.GroupResource(), r.Name)
	case old == nil && uid == "":
		return s.createObject(r, object)
	case old == nil:
		return nil, apierrors.NewConflict(r.Resource.GroupResource(), r.Name, otherUID(uid, ""))
	case uid != "" && uid != old.GetUID():
		return nil, apierrors.NewConflict(r.Resource.GroupResource(), r.Name, otherUID(uid, old.GetUID()))
	}
	if r.Subresource == "scale" {
		object = r.kind.withScale(old, object)
	}
	s.track(r, object, old)
	return s.replace(r, old, object)
}

// decode brings an object that a client has sent into the form in which it is kept.
func (r *Request) decode(object *unstructured.Unstructured) error {
	err := r.kind.decode(object)
	if err != nil {
		err = apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %[1]s: %v",
			r.kind.gvk.Kind, r.kind.gvk.Version, err))
	}
	return err
}

// existing returns the object of a request in its version, or nil.
func (s *Server) existing(r *Request) *unstructured.Unstructured {
	if old := s.table(r.kind).objects[keyOf(r.Namespace, r.Name)]; old != nil {
		return s.view(r.kind, old)
	}
	return nil
}

// replace writes an object in place of old. It changes the object.
func (s *Server) replace(r *Request, old, object *unstructured.Unstructured) (*Response, error) {
	k := r.kind
	if err := setNamespace(r, object); err != nil {
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
	gone := old.GetDeletionTimestamp() != nil && len(object.GetFinalizers()) == 0 &&
		!hasNamespaceFinalizers(k, object)
	if r.DryRun {
		return r.found(object), nil
	}
	if gone {
		s.commit(r, old, &unstructured.Unstructured{Object: deepCopy(old.Object)}, true)
		return r.found(object), nil
	}
	if sameObject(object, old) {
		return r.found(old), nil
	}
	return r.found(s.view(k, s.commit(r, old, object, false))), nil
}

// otherUID says, in the words of the API server, that an object is not the one that was meant.
func otherUID(meant, is types.UID) error {
	return fmt.Errorf("%s: UID in precondition: %v, UID in object meta: %v", "Precondition failed",
		meant, is)
}
