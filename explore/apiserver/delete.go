package apiserver

import (
	"errors"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured/unstructuredscheme"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apiserver/pkg/registry/rest"
)

var (
	namespaces = corev1.SchemeGroupVersion.WithResource("namespaces")
	immortal   = []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic}
	typer      = unstructuredscheme.NewUnstructuredObjectTyper()
)

func (s *Server) delete(r *Request) (*Response, error) {
	k, old := r.kind, s.existing(r)
	if k.is("namespaces") && slices.Contains(immortal, r.Name) {
		return nil, apierrors.NewForbidden(r.Resource.GroupResource(), r.Name,
			errors.New("this namespace may not be deleted"))
	}
	if errs := validation.ValidateDeleteOptions(&r.Delete); len(errs) > 0 {
		return nil, apierrors.NewInvalid(metav1.Kind("DeleteOptions"), "", errs)
	}
	if old == nil {
		return nil, r.notFound()
	}
	if _, _, err := rest.BeforeDelete(typer, r.context, old, &r.Delete); err != nil {
		if status := new(apierrors.StatusError); k.is("namespaces") && errors.As(err, &status) {
			status.ErrStatus.Details.Kind = "namespaces"
		}
		return nil, err
	}
	object := old.DeepCopy()
	object.SetFinalizers(slices.DeleteFunc(object.GetFinalizers(),
		func(finalizer string) bool { return finalizer == protection[k.gvr.Resource] }))
	if !k.is("events") && (old.GetDeletionTimestamp() == nil || !hasNamespaceFinalizers(k, old)) {
		setDeletionFinalizers(object, r.Delete.PropagationPolicy)
	}
	stays := markDeleted(k, object) || len(object.GetFinalizers()) > 0
	if !stays {
		object = old.DeepCopy()
	}
	if !r.isDryRun() && (!stays || !sameObject(object, old)) {
		s.commit(r, old, object, !stays)
	}
	if !stays && !k.ReturnedByDelete {
		object = asObject(statusKind, &metav1.Status{Status: metav1.StatusSuccess,
			Details: &metav1.StatusDetails{Name: r.Name, Group: r.Resource.Group,
				Kind: r.Resource.Resource, UID: old.GetUID()}})
	}
	return &Response{Code: http.StatusOK, Object: object}, nil
}

// setDeletionFinalizers sets the finalizers for the garbage collector, which is not part of the
// server.
func setDeletionFinalizers(object *unstructured.Unstructured, policy *metav1.DeletionPropagation) {
	if policy == nil {
		return
	}
	const orphan, foreground = metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents
	wanted := map[metav1.DeletionPropagation]string{metav1.DeletePropagationOrphan: orphan,
		metav1.DeletePropagationForeground: foreground}[*policy]
	finalizers := slices.DeleteFunc(object.GetFinalizers(), func(name string) bool {
		return name == orphan || name == foreground
	})
	if object.SetFinalizers(nil); wanted != "" {
		finalizers = append(finalizers, wanted)
	}
	if len(finalizers) > 0 {
		object.SetFinalizers(finalizers)
	}
}

// markDeleted lets an object show that it is being deleted, and reports whether it is a namespace,
// which stays until its finalizers are gone.
func markDeleted(k *kind, object *unstructured.Unstructured) (stays bool) {
	metadata, isNamespace := metadataOf(object), k.is("namespaces")
	if metadata["deletionTimestamp"] == nil {
		metadata["deletionTimestamp"] = time.Now().UTC().Format(time.RFC3339)
		if generation := object.GetGeneration(); generation > 0 && !isNamespace {
			object.SetGeneration(generation + 1)
		}
		stays = isNamespace
	}
	if isNamespace && (stays || hasNamespaceFinalizers(k, object)) {
		_ = unstructured.SetNestedField(object.Object, string(corev1.NamespaceTerminating), "status",
			"phase")
		return true
	}
	metadata["deletionGracePeriodSeconds"] = int64(0)
	return false
}

// hasNamespaceFinalizers reports whether an object is a namespace that is not finalized.
func hasNamespaceFinalizers(k *kind, object *unstructured.Unstructured) bool {
	finalizers, _, _ := unstructured.NestedSlice(object.Object, "spec", "finalizers")
	return k.is("namespaces") && len(finalizers) > 0
}

// deleteCollection deletes the objects that a request selects.
func (s *Server) deleteCollection(r *Request) (*Response, error) {
	response := s.listAt(r, s.revision)
	for _, object := range response.items {
		one := *r
		one.Namespace, one.Name = object.GetNamespace(), object.GetName()
		if _, err := s.delete(&one); err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
	}
	return response, nil
}
