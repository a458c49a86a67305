package apiserver

import "k8s.io/apimachinery/pkg/runtime/schema"

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
	for _, k := range s.kinds { // nothing is added after New
		if is(k) && (!ok || k.gvr.String() < gvr.String()) {
			gvr, namespaced, ok = k.gvr, k.namespaced, true
		}
	}
	return gvr, namespaced, ok
}
