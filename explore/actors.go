package explore

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"

	"example.com/sample-controller/explore/apiserver"
)

// Write is a write of the controller that has succeeded.
type Write struct {
	Verb        string // create, update, patch or delete
	Resource    string // "deployments"
	Subresource string // "status"
	// Old is the object before, and New after it. After a creation, Old is nil. After a deletion, New
	// is nil, unless a finalizer holds the object.
	Old, New *unstructured.Unstructured
}

// State is what the API server has.
type State struct {
	Outside any // what Controller.Outside has made

	server *apiserver.Server
}

// Get returns an object of a resource, such as "foos" or "deployments.apps", or nil. The name is
// "a", or "elsewhere/a" in another namespace than the default.
func Get[T any](s State, resource, name string) *T {
	_, namespaced, _ := s.server.Lookup(resource)
	namespace, name := split(name, namespaced)
	for _, u := range s.all(resource) {
		if u.GetNamespace() == namespace && u.GetName() == name {
			return As[T](u)
		}
	}
	return nil
}

// List returns all objects of a resource, by namespace and name.
func List[T any](s State, resource string) (list []*T) {
	for _, u := range s.all(resource) {
		list = append(list, As[T](u))
	}
	return list
}

func (s State) all(resource string) []*object {
	gvr, _, ok := s.server.Lookup(resource)
	if !ok {
		panic(resource + ": is its definition in CRDs?")
	}
	return s.server.List(gvr)
}

// As returns an object as its Go type has it, or nil.
func As[T any](u *unstructured.Unstructured) *T {
	typed := new(T)
	if u == nil || runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, typed) != nil {
		return nil
	}
	return typed
}

type object = unstructured.Unstructured

// isSideshow reports whether nothing depends on a resource that is written all the time.
func isSideshow(resource string) bool {
	return slices.Contains([]string{"events", "events.events.k8s.io", "leases.coordination.k8s.io"}, resource)
}

// objects returns all objects, but neither Events nor Leases.
func (w *World) objects() (all []*object) {
	for _, resource := range w.server.Resources() {
		if !isSideshow(resource.GroupResource().String()) {
			all = append(all, w.server.List(resource)...)
		}
	}
	return all
}

// collectGarbage does what the garbage collector does, until there is nothing left to do.
func (w *World) collectGarbage() {
	for before := int64(-1); before != w.server.Revision(); {
		before = w.server.Revision()
		all, alive := []*object{}, map[types.UID]*object{}
		for _, resource := range w.server.Resources() {
			all = append(all, w.server.List(resource)...)
		}
		for _, o := range all {
			if !isWaiting(o) {
				alive[o.GetUID()] = o
			}
		}
		for _, o := range all {
			w.collect(o, all, alive)
		}
	}
}

func isForeground(finalizer string) bool { return finalizer == metav1.FinalizerDeleteDependents }

// isWaiting reports whether the deletion of an object, in the foreground, waits for what it owns.
func isWaiting(o *object) bool {
	return o.GetDeletionTimestamp() != nil && slices.ContainsFunc(o.GetFinalizers(), isForeground)
}

// collect deletes an object whose owners are all gone or wait for it, and lets go one that waits for
// nothing any more. An owner in another namespace is none. The owner of what has no namespace has
// none, either: if its kind has, nothing is deleted.
func (w *World) collect(o *object, all []*object, alive map[types.UID]*object) {
	owners := o.GetOwnerReferences()
	left := slices.DeleteFunc(o.GetOwnerReferences(), func(owner metav1.OwnerReference) bool {
		_, namespaced, _ := w.server.LookupKind(schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind))
		found := alive[owner.UID]
		return (o.GetNamespace() != "" || !namespaced) &&
			(found == nil || namespaced && found.GetNamespace() != o.GetNamespace())
	})
	switch {
	case len(left) == len(owners):
	case len(left) == 0:
		w.delete(o)
	default:
		w.update(o, func(o *object) { o.SetOwnerReferences(left) })
	}
	blocks := func(owner metav1.OwnerReference) bool {
		return owner.UID == o.GetUID() && ptr.Deref(owner.BlockOwnerDeletion, false)
	}
	if isWaiting(o) && !slices.ContainsFunc(all, func(dependent *object) bool {
		return slices.ContainsFunc(dependent.GetOwnerReferences(), blocks)
	}) {
		w.update(o, func(o *object) { o.SetFinalizers(slices.DeleteFunc(o.GetFinalizers(), isForeground)) })
	}
}

// delete deletes an object unless that is under way.
func (w *World) delete(o *object) {
	if o.GetDeletionTimestamp() == nil {
		err := w.client(o).Delete(context.Background(), o.GetName(),
			metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(o.GetUID()))})
		w.tell("deleting "+o.GetName(), err)
	}
}

// Others returns what the other controllers of a cluster do, for a server without an explorer: act
// deletes what has lost its owner and what is in Namespaces that go, and makes all Pods available.
func Others(server *apiserver.Server) (act func()) {
	w := &World{server: server, users: dynamic.NewForConfigOrDie(server.Config(nil))}
	return func() {
		CollectGarbage.Do(w)
		RollOut.Do(w)
	}
}

// finishNamespaces deletes what is in the namespaces that are being deleted, and then these.
func (w *World) finishNamespaces() {
	all := w.objects()
	for _, namespace := range all {
		if namespace.GetKind() != "Namespace" || namespace.GetDeletionTimestamp() == nil {
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
			w.update(namespace, func(o *object) {
				unstructured.RemoveNestedField(o.Object, "spec", "finalizers")
			}, "finalize")
		}
	}
}

// rollOut makes the Pods of Deployments and StatefulSets available, as their controllers would.
func (w *World) rollOut() {
	for _, o := range slices.Concat(w.State().all("deployments.apps"), w.State().all("statefulsets.apps")) {
		if o.GetDeletionTimestamp() != nil {
			continue
		}
		w.update(o, func(o *object) {
			replicas, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
			_ = unstructured.SetNestedField(o.Object, o.GetGeneration(), "status", "observedGeneration")
			for _, count := range []string{"replicas", "updatedReplicas", "readyReplicas",
				"availableReplicas"} {
				_ = unstructured.SetNestedField(o.Object, replicas, "status", count)
				if replicas == 0 {
					unstructured.RemoveNestedField(o.Object, "status", count)
				}
			}
		}, "status")
	}
}

// update changes an object as the cluster does.
func (w *World) update(o *object, change func(*object), subresources ...string) {
	w.tell("updating "+o.GetName(), w.change(o, change, subresources...))
}

// change changes an object. If nothing changes, there is no write: its event would hide that the
// controller has missed one.
func (w *World) change(o *object, change func(*object), subresources ...string) error {
	changed := o.DeepCopy()
	if change(changed); equality.Semantic.DeepEqual(o, changed) {
		return nil
	}
	_, err := w.client(o).Update(context.Background(), changed, metav1.UpdateOptions{}, subresources...)
	return err
}
