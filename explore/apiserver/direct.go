package apiserver

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Get returns an object, which must not be changed, or nil if there is none.
func (s *Server) Get(
	resource schema.GroupVersionResource, namespace, name string,
) *unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.kinds[resource]; k != nil {
		return s.existing(&Request{kind: k, Namespace: namespace, Name: name})
	}
	return nil
}

// List returns the objects of a resource, in the order of a list. They must not be changed.
func (s *Server) List(resource schema.GroupVersionResource) []*unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.kinds[resource]; k != nil {
		_, objects := s.sorted(&Request{kind: k}, s.revision)
		return objects
	}
	return nil
}

// History returns all writes of a resource, in order, in the version that is stored.
func (s *Server) History(resource schema.GroupVersionResource) []Write {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.kinds[resource]; k != nil {
		return slices.Clone(s.table(k).history)
	}
	return nil
}

// Revision returns the revision of the last write.
func (s *Server) Revision() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.revision
}

// Resources returns the resources that have had objects, sorted.
func (s *Server) Resources() []schema.GroupVersionResource {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Keys(s.tables), func(a, b schema.GroupVersionResource) int {
		return strings.Compare(a.String(), b.String())
	})
}

// Lookup returns the resource of that name, such as "foos" or "deployments.apps".
func (s *Server) Lookup(name string) (gvr schema.GroupVersionResource, namespaced, ok bool) {
	want := schema.ParseGroupResource(name)
	return s.find(func(k *kind) bool {
		return k.gvr.Resource == want.Resource && (want.Group == "" || k.gvr.Group == want.Group)
	})
}

// LookupKind returns the resource of a kind.
func (s *Server) LookupKind(gvk schema.GroupVersionKind) (
	gvr schema.GroupVersionResource, namespaced, ok bool,
) {
	return s.find(func(k *kind) bool { return k.gvk == gvk })
}

// IsCustom reports whether a kind is that of a CustomResourceDefinition.
func (s *Server) IsCustom(gvk schema.GroupVersionKind) bool {
	_, _, ok := s.find(func(k *kind) bool { return k.gvk == gvk && k.custom != nil })
	return ok
}

// find returns the first resource, by group and name, for which is returns true.
func (s *Server) find(is func(*kind) bool) (gvr schema.GroupVersionResource, namespaced, ok bool) {
	for _, k := range s.kinds {
		if is(k) && (!ok || k.gvr.String() < gvr.String()) {
			gvr, namespaced, ok = k.gvr, k.namespaced, true
		}
	}
	return gvr, namespaced, ok
}
