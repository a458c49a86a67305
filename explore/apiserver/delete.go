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
	typer      = unstructuredscheme.NewUnstructuredObjectTyper()
)

func (s *Server) delete(r *Request) (*Response, error) {
	k, old := r.kind, s.existing(r)
	if k.is("namespaces") && r.Name == metav1.NamespaceDefault {
		return nil, apierrors.NewForbidden(corev1.Resource("namespaces"), r.Name,
			errors.New("this namespace may not be deleted"))
	}
	if errs := validation.ValidateDeleteOptions(&r.Delete); len(errs) > 0 {
		return nil, apierrors.NewInvalid(metav1.Kind("DeleteOptions"), "", errs)
	}
	if old == nil {
		return nil, apierrors.NewNotFound(r.Resource.GroupResource(), r.Name)
	}
	if _, _, err := rest.BeforeDelete(typer, r.context, old, &r.Delete); err != nil {
		if status := new(apierrors.StatusError); k.is("namespaces") && errors.As(err, &status) {
			status.ErrStatus.Details.Kind = "namespaces"
		}
		return nil, err
	}
	object := old.DeepCopy()
	if !k.is("events") && (old.GetDeletionTimestamp() == nil || !hasNamespaceFinalizers(k, old)) {
		setDeletionFinalizers(object, r.Delete, k.is("namespaces"))
	}
	stays := markDeleted(k, object) || len(object.GetFinalizers()) > 0
	if !stays {
		object = old.DeepCopy()
	}
	if !r.DryRun && (!stays || !sameObject(object, old)) {
		object = k.view(s.commit(r, old, object, !stays))
	}
	orphan := r.Delete.OrphanDependents //nolint:staticcheck // old clients
	switch {
	case !stays && !k.is(returnedByDelete):
		object = deleted(r, old)
	case stays && orphan != nil && !*orphan:
		return &Response{Code: http.StatusAccepted, Object: object}, nil
	}
	return &Response{Code: http.StatusOK, Object: object}, nil
}

// deleted returns the answer to a delete that has removed the object.
func deleted(r *Request, old *unstructured.Unstructured) *unstructured.Unstructured {
	status, _ := converter.ToUnstructured(&metav1.Status{Status: metav1.StatusSuccess,
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Details: &metav1.StatusDetails{
			Name: r.Name, Group: r.Resource.Group, Kind: r.Resource.Resource, UID: old.GetUID()}})
	return &unstructured.Unstructured{Object: status}
}

// setDeletionFinalizers sets the finalizers for the garbage collector, which is not part of the
// server.
func setDeletionFinalizers(
	object *unstructured.Unstructured, options metav1.DeleteOptions, isNamespace bool,
) {
	finalizers := object.GetFinalizers()
	orphan := slices.Contains(finalizers, metav1.FinalizerOrphanDependents)
	foreground := slices.Contains(finalizers, metav1.FinalizerDeleteDependents)
	switch policy := options.PropagationPolicy; {
	case options.OrphanDependents != nil: //nolint:staticcheck // old clients
		orphan = *options.OrphanDependents //nolint:staticcheck // old clients
		foreground = isNamespace && !orphan
	case policy != nil:
		orphan = *policy == metav1.DeletePropagationOrphan
		foreground = *policy == metav1.DeletePropagationForeground
	}
	set := func(name string, wanted bool) {
		if !wanted {
			finalizers = slices.DeleteFunc(finalizers, func(other string) bool { return other == name })
		} else if !slices.Contains(finalizers, name) {
			finalizers = append(finalizers, name)
		}
	}
	set(metav1.FinalizerOrphanDependents, orphan)
	set(metav1.FinalizerDeleteDependents, foreground)
	if object.SetFinalizers(finalizers); len(finalizers) == 0 {
		object.SetFinalizers(nil)
	}
}

// markDeleted lets an object show that it is being deleted, and reports whether it is a namespace,
// which stays until its finalizers are gone.
func markDeleted(k *kind, object *unstructured.Unstructured) (stays bool) {
	metadata := object.Object["metadata"].(map[string]any)
	isNamespace := k.is("namespaces")
	if metadata["deletionTimestamp"] == nil {
		metadata["deletionTimestamp"] = time.Now().UTC().Format(time.RFC3339)
		if generation := object.GetGeneration(); generation > 0 && !isNamespace {
			object.SetGeneration(generation + 1)
		}
		stays = isNamespace
	}
	if isNamespace {
		_ = unstructured.SetNestedField(object.Object, string(corev1.NamespaceTerminating), "status",
			"phase")
		return stays || hasNamespaceFinalizers(k, object)
	}
	metadata["deletionGracePeriodSeconds"] = int64(0)
	return false
}

// hasNamespaceFinalizers reports whether an object is a namespace that is not finalized.
func hasNamespaceFinalizers(k *kind, object *unstructured.Unstructured) bool {
	finalizers, _, _ := nested(object.Object, "spec.finalizers")
	list, _ := finalizers.([]any)
	return k.is("namespaces") && len(list) > 0
}

// deleteCollection deletes the objects that a request selects.
func (s *Server) deleteCollection(r *Request) (*Response, error) {
	response := s.page(r, s.revision, r.List.Limit, "")
	for _, object := range response.items {
		one := *r
		one.Namespace, one.Name = object.GetNamespace(), object.GetName()
		if _, err := s.delete(&one); err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
	}
	return response, nil
}
