package apiserver

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func (s *Server) delete(r *Request) (*Response, error) {
	old := s.existing(r)
	if r.kind.is("namespaces") && r.Name == metav1.NamespaceDefault {
		return nil, apierrors.NewForbidden(corev1.Resource("namespaces"), r.Name,
			fmt.Errorf("this namespace may not be deleted"))
	}
	if errs := validation.ValidateDeleteOptions(&r.Delete); len(errs) > 0 {
		kind := schema.GroupKind{Group: metav1.GroupName, Kind: "DeleteOptions"}
		return nil, apierrors.NewInvalid(kind, "", errs)
	}
	if old == nil {
		return nil, apierrors.NewNotFound(r.Resource.GroupResource(), r.Name)
	}
	if err := checkPreconditions(r, old); err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{Object: deepCopy(old.Object)}
	finalizers := old.GetFinalizers()
	switch again := old.GetDeletionTimestamp() != nil; {
	case r.kind.is("events"): // they are not for the garbage collector
	case !again || !hasNamespaceFinalizers(r.kind, old):
		finalizers = deletionFinalizers(finalizers, r.Delete, r.kind.is("namespaces"))
	}
	if !slices.Equal(finalizers, old.GetFinalizers()) {
		object.SetFinalizers(finalizers)
	}
	if stays := markDeleted(r.kind, object); stays || len(finalizers) > 0 {
		code := http.StatusOK
		if orphan := r.Delete.OrphanDependents; orphan != nil && !*orphan { //nolint:staticcheck // old clients
			code = http.StatusAccepted
		}
		if !r.DryRun && !sameObject(object, old) {
			object = s.view(r.kind, s.commit(r, old, object, false))
		}
		return &Response{Code: code, Object: object}, nil
	}
	object = &unstructured.Unstructured{Object: deepCopy(old.Object)}
	if !r.DryRun {
		object = s.view(r.kind, s.commit(r, old, object, true))
	}
	if r.kind.is(returnedByDelete) {
		return &Response{Code: http.StatusOK, Object: object}, nil
	}
	return deleted(r, old), nil
}

// deleted returns the answer to a delete that has removed the object.
func deleted(r *Request, old *unstructured.Unstructured) *Response {
	details := map[string]any{"name": r.Name, "kind": r.Resource.Resource, "uid": string(old.GetUID())}
	if r.Resource.Group != "" {
		details["group"] = r.Resource.Group
	}
	status := map[string]any{"kind": "Status", "apiVersion": "v1", "metadata": map[string]any{},
		"status": metav1.StatusSuccess, "details": details}
	return &Response{Code: http.StatusOK, Object: &unstructured.Unstructured{Object: status}}
}

// checkPreconditions compares the object with what the client has seen.
func checkPreconditions(r *Request, old *unstructured.Unstructured) error {
	want := r.Delete.Preconditions
	if want == nil {
		want = &metav1.Preconditions{}
	}
	resource := schema.GroupResource{Group: r.Resource.Group, Resource: r.kind.gvk.Kind}
	if r.kind.is("namespaces") {
		resource = r.Resource.GroupResource()
	}
	if uid := want.UID; uid != nil && *uid != old.GetUID() {
		return apierrors.NewConflict(resource, r.Name, fmt.Errorf("the UID in the precondition (%s) does"+
			" not match the UID in record (%s). The object might have been deleted and then recreated",
			*uid, old.GetUID()))
	}
	if version := want.ResourceVersion; version != nil && *version != old.GetResourceVersion() {
		return apierrors.NewConflict(resource, r.Name, fmt.Errorf("the ResourceVersion in the"+
			" precondition (%s) does not match the ResourceVersion in record (%s). The object might have"+
			" been modified", *version, old.GetResourceVersion()))
	}
	return nil
}

// deletionFinalizers returns the finalizers of an object with those for the garbage collector,
// which is not part of the server.
func deletionFinalizers(finalizers []string, options metav1.DeleteOptions, isNamespace bool) []string {
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
	var result []string
	for _, finalizer := range finalizers {
		if finalizer != metav1.FinalizerOrphanDependents &&
			finalizer != metav1.FinalizerDeleteDependents {
			result = append(result, finalizer)
		}
	}
	if orphan {
		result = append(result, metav1.FinalizerOrphanDependents)
	}
	if foreground {
		result = append(result, metav1.FinalizerDeleteDependents)
	}
	if len(result) == len(finalizers) && !slices.ContainsFunc(result, func(f string) bool {
		return !slices.Contains(finalizers, f)
	}) {
		return finalizers
	}
	return result
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
	if err := s.checkList(r); err != nil {
		return nil, err
	}
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

// initialStatus is the status of new objects, where there is one.
var initialStatus = map[schema.GroupVersionResource]map[string]any{
	namespaces: {"phase": "Active"},
	corev1.SchemeGroupVersion.WithResource("pods"):                   {"phase": "Pending", "qosClass": "BestEffort"},
	corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"): {"phase": "Pending"},
	corev1.SchemeGroupVersion.WithResource("persistentvolumes"):      {"phase": "Pending"},
}

var namespaces = corev1.SchemeGroupVersion.WithResource("namespaces")
