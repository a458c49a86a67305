package explore

import (
	"context"
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// object is an object of the API server, and where it is.
type object struct {
	*unstructured.Unstructured
	resource schema.GroupVersionResource
}

// resources returns the resources that have had objects, but neither Events nor Leases.
func (w *World) resources() []schema.GroupVersionResource {
	return slices.DeleteFunc(w.server.Resources(), func(resource schema.GroupVersionResource) bool {
		return isSideshow(resource.Resource)
	})
}

// isSideshow reports whether nothing depends on a resource that is written all the time.
func isSideshow(resource string) bool { return resource == "events" || resource == "leases" }

// objects returns all objects, but neither Events nor Leases.
func (w *World) objects() (all []object) {
	for _, resource := range w.resources() {
		for _, u := range w.server.List(resource) {
			all = append(all, object{u, resource})
		}
	}
	return all
}

// collectGarbage does what the garbage collector does, until there is nothing left to do.
func (w *World) collectGarbage() {
	for before := int64(-1); before != w.server.Revision(); {
		before = w.server.Revision()
		all := w.objects()
		for _, o := range all {
			w.collect(o, all)
		}
	}
}

// collect deletes an object whose owners are all gone, and lets go one whose deletion waits for
// what it owns.
func (w *World) collect(o object, all []object) {
	owners := o.GetOwnerReferences()
	left := slices.DeleteFunc(slices.Clone(owners), func(owner metav1.OwnerReference) bool {
		return !slices.ContainsFunc(all, func(o object) bool { return o.GetUID() == owner.UID })
	})
	switch {
	case len(left) == len(owners): // all are there, or there are none
	case len(left) == 0:
		w.delete(o)
		return
	default:
		w.setOwners(o, left)
	}
	if o.GetDeletionTimestamp() == nil {
		return
	}
	foreground := slices.Contains(o.GetFinalizers(), metav1.FinalizerDeleteDependents)
	orphan := slices.Contains(o.GetFinalizers(), metav1.FinalizerOrphanDependents)
	if !foreground && !orphan {
		return
	}
	isOwner := func(owner metav1.OwnerReference) bool { return owner.UID == o.GetUID() }
	for _, dependent := range all {
		if !slices.ContainsFunc(dependent.GetOwnerReferences(), isOwner) {
			continue
		}
		if orphan {
			w.setOwners(dependent, slices.DeleteFunc(dependent.GetOwnerReferences(), isOwner))
		} else if dependent.GetDeletionTimestamp() == nil {
			w.delete(dependent)
			return // it is let go in the next round
		}
	}
	w.update(o.resource, o.Unstructured, nil, func(fields map[string]any) {
		u := unstructured.Unstructured{Object: fields}
		u.SetFinalizers(slices.DeleteFunc(u.GetFinalizers(), func(finalizer string) bool {
			return finalizer == metav1.FinalizerDeleteDependents ||
				finalizer == metav1.FinalizerOrphanDependents
		}))
	})
}

func (w *World) setOwners(o object, owners []metav1.OwnerReference) {
	w.update(o.resource, o.Unstructured, nil, func(fields map[string]any) {
		(&unstructured.Unstructured{Object: fields}).SetOwnerReferences(owners)
	})
}

// delete deletes an object unless that is under way.
func (w *World) delete(o object) {
	if o.GetDeletionTimestamp() != nil {
		return
	}
	uid := o.GetUID()
	err := w.users.Resource(o.resource).Namespace(o.GetNamespace()).Delete(context.Background(),
		o.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	w.ignore("deleting "+o.GetName(), err)
}

// finishNamespaces deletes what is in the namespaces that are being deleted, and then these.
func (w *World) finishNamespaces() {
	all := w.objects()
	for _, namespace := range all {
		if namespace.resource.Resource != "namespaces" || namespace.GetDeletionTimestamp() == nil {
			continue
		}
		empty := true
		for _, o := range all {
			if o.GetNamespace() == namespace.GetName() {
				w.delete(o)
				empty = empty && len(o.GetFinalizers()) == 0
			}
		}
		if empty {
			w.update(namespace.resource, namespace.Unstructured, []string{"finalize"},
				func(fields map[string]any) {
					unstructured.RemoveNestedField(fields, "spec", "finalizers")
				})
		}
	}
}

// rollOut makes the Pods of all workloads available, as their controllers would. If nothing
// changes, there is no write: its event would hide that the controller has missed one.
func (w *World) rollOut() {
	counts := map[string][]string{"replicasets": {"replicas", "readyReplicas", "availableReplicas"}}
	counts["deployments"] = append(counts["replicasets"], "updatedReplicas")
	counts["statefulsets"] = counts["deployments"]
	for _, o := range w.objects() {
		counts := counts[o.resource.Resource]
		if o.resource.Group != "apps" || counts == nil || o.GetDeletionTimestamp() != nil {
			continue
		}
		replicas, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
		w.update(o.resource, o.Unstructured, []string{"status"}, func(fields map[string]any) {
			_ = unstructured.SetNestedField(fields, o.GetGeneration(), "status", "observedGeneration")
			for _, count := range counts {
				_ = unstructured.SetNestedField(fields, replicas, "status", count)
				if replicas == 0 {
					unstructured.RemoveNestedField(fields, "status", count)
				}
			}
		})
	}
}

// update changes an object as the cluster does: it reads it, and writes it if it has changed.
func (w *World) update(
	gvr schema.GroupVersionResource, object *unstructured.Unstructured, subresources []string,
	change func(map[string]any),
) {
	before, err := json.Marshal(object)
	if err != nil {
		w.mistake("%v", err)
		return
	}
	object = object.DeepCopy()
	change(object.Object)
	if after, err := json.Marshal(object); err == nil && string(before) == string(after) {
		return
	}
	client := w.users.Resource(gvr).Namespace(object.GetNamespace())
	_, err = client.Update(context.Background(), object, metav1.UpdateOptions{}, subresources...)
	w.ignore("updating "+object.GetName(), err)
}
