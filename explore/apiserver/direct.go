package apiserver

import (
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
	k := s.kinds[resource]
	if k == nil {
		return nil
	}
	if object := s.table(k).objects[keyOf(namespace, name)]; object != nil {
		return s.view(k, object)
	}
	return nil
}

// List returns the objects of a resource, sorted by namespace and name. They must not be changed.
func (s *Server) List(resource schema.GroupVersionResource) []*unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	var objects []*unstructured.Unstructured
	if k := s.kinds[resource]; k != nil {
		for _, object := range s.table(k).objects {
			objects = append(objects, s.view(k, object))
		}
	}
	slices.SortFunc(objects, func(a, b *unstructured.Unstructured) int {
		if byNamespace := strings.Compare(a.GetNamespace(), b.GetNamespace()); byNamespace != 0 {
			return byNamespace
		}
		return strings.Compare(a.GetName(), b.GetName())
	})
	return objects
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
