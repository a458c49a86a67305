package explore

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

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
	gvr, namespaced, _ := s.server.Lookup(resource)
	namespace, name := split(name, namespaced)
	for _, u := range s.server.List(gvr) {
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

// all returns all objects of a resource.
func (s State) all(resource string) []*object {
	gvr, _, _ := s.server.Lookup(resource)
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

// resources returns the resources that have had objects, but neither Events nor Leases.
func (w *World) resources() []schema.GroupVersionResource {
	return slices.DeleteFunc(w.server.Resources(), func(resource schema.GroupVersionResource) bool {
		return isSideshow(resource.Resource)
	})
}

// isSideshow reports whether nothing depends on a resource that is written all the time.
func isSideshow(resource string) bool { return resource == "events" || resource == "leases" }

// objects returns all objects, but neither Events nor Leases.
func (w *World) objects() (all []*object) {
	for _, resource := range w.resources() {
		all = append(all, w.server.List(resource)...)
	}
	return all
}
