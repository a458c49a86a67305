package apiserver

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
)

// discover answers what is not about objects.
func (s *Server) discover(r *Request) (*Response, error) {
	path := strings.TrimSuffix(r.Path, "/")
	switch {
	case path == "/healthz" || path == "/readyz" || path == "/livez":
		return &Response{Code: http.StatusOK, raw: []byte("ok"), media: "text/plain"}, nil
	case path == "/version":
		return document(http.StatusOK, version.Info{Major: "1", Minor: "37", GitVersion: "v1.37.2"}), nil
	case (path == "/api" || path == "/apis") && strings.Contains(r.accept, "as=APIGroupDiscoveryList"):
		response := document(http.StatusOK, s.discovery(path == "/api"))
		response.media = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
		return response, nil
	case path == "/api":
		return document(http.StatusOK, metav1.APIVersions{Versions: []string{"v1"},
			TypeMeta: metav1.TypeMeta{Kind: "APIVersions", APIVersion: "v1"}}), nil
	}
	prefix, name, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	groups, resources, _ := discovery.SplitGroupsAndResources(*s.discovery(prefix == "api"))
	if path == "/apis" {
		groups.TypeMeta = metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}
		return document(http.StatusOK, groups), nil
	}
	for _, group := range groups.Groups {
		if prefix == "apis" && group.Name == name {
			group.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
			return document(http.StatusOK, group), nil
		}
	}
	gv, err := schema.ParseGroupVersion(name)
	if list := resources[gv]; list != nil && err == nil {
		list.TypeMeta = metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}
		return document(http.StatusOK, list), nil
	}
	return nil, notFound()
}

// notFound is the answer to a path that is none of the server's.
func notFound() error {
	return apierrors.NewGenericServerResponse(http.StatusNotFound, "", schema.GroupResource{}, "",
		"404 page not found", 0, true)
}

// discovery is all discovery in one answer: that of the core group, or that of the others.
func (s *Server) discovery(core bool) *apidiscoveryv2.APIGroupDiscoveryList {
	list := &apidiscoveryv2.APIGroupDiscoveryList{TypeMeta: metav1.TypeMeta{
		Kind: "APIGroupDiscoveryList", APIVersion: "apidiscovery.k8s.io/v2"}}
	kinds := slices.SortedFunc(maps.Values(s.kinds), func(a, b *kind) int {
		return cmp.Or(strings.Compare(a.gvr.Group, b.gvr.Group),
			version.CompareKubeAwareVersionStrings(b.gvr.Version, a.gvr.Version),
			strings.Compare(a.gvr.Resource, b.gvr.Resource))
	})
	for _, k := range kinds {
		if core != (k.gvr.Group == "") {
			continue
		}
		if last := len(list.Items) - 1; last < 0 || list.Items[last].Name != k.gvr.Group {
			list.Items = append(list.Items, apidiscoveryv2.APIGroupDiscovery{
				ObjectMeta: metav1.ObjectMeta{Name: k.gvr.Group}})
		}
		group := &list.Items[len(list.Items)-1]
		if last := len(group.Versions) - 1; last < 0 || group.Versions[last].Version != k.gvr.Version {
			group.Versions = append(group.Versions, apidiscoveryv2.APIVersionDiscovery{
				Version: k.gvr.Version, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent})
		}
		version := &group.Versions[len(group.Versions)-1]
		version.Resources = append(version.Resources, k.discovery())
	}
	return list
}

// discovery returns what discovery says of a kind.
func (k *kind) discovery() apidiscoveryv2.APIResourceDiscovery {
	d := apidiscoveryv2.APIResourceDiscovery{Resource: k.gvr.Resource, Scope: apidiscoveryv2.ScopeCluster,
		SingularResource: k.names.Singular, ResponseKind: (*metav1.GroupVersionKind)(&k.gvk),
		ShortNames: k.names.ShortNames, Categories: k.names.Categories, Verbs: []string{"create"}}
	if k.namespaced {
		d.Scope = apidiscoveryv2.ScopeNamespace
	}
	if k.review == "" {
		d.Verbs = strings.Fields("create delete deletecollection get list patch update watch")
	}
	add := func(name string, kind *schema.GroupVersionKind) {
		d.Subresources = append(d.Subresources, apidiscoveryv2.APISubresourceDiscovery{Subresource: name,
			ResponseKind: (*metav1.GroupVersionKind)(kind), Verbs: []string{"get", "patch", "update"}})
	}
	if k.status {
		add("status", &k.gvk)
	}
	if k.scale != nil {
		add("scale", &scaleKind)
	}
	return d
}
