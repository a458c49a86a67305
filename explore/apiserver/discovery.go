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
	path := strings.Trim(r.Path, "/")
	prefix, name, _ := strings.Cut(path, "/")
	all := s.discovery(prefix == "api")
	groups, resources, _ := discovery.SplitGroupsAndResources(*all)
	gv, _ := schema.ParseGroupVersion(name)
	group := slices.IndexFunc(groups.Groups, func(g metav1.APIGroup) bool { return g.Name == name })
	isAPI := prefix == "api" || prefix == "apis"
	switch aggregated := strings.Contains(r.accept, "as=APIGroupDiscoveryList"); {
	case path == "healthz" || path == "readyz" || path == "livez":
		return &Response{Code: http.StatusOK, raw: []byte("ok"), media: "text/plain"}, nil
	case path == "version":
		info := version.Info{Major: "1", Minor: "37", GitVersion: "v1.37.2"}
		return document("", info), nil
	case isAPI && name == "" && aggregated:
		response := document("", all)
		response.media = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
		return response, nil
	case path == "api":
		return document("APIVersions", &metav1.APIVersions{Versions: []string{"v1"}}), nil
	case path == "apis":
		return document("APIGroupList", groups), nil
	case prefix == "apis" && group >= 0:
		return document("APIGroup", &groups.Groups[group]), nil
	case isAPI && resources[gv] != nil:
		return document("APIResourceList", resources[gv]), nil
	}
	return nil, errNotServed
}

// document returns an answer that is not about objects.
func document(kind string, value any) *Response {
	if kind != "" {
		value = asObject(metav1.Unversioned.WithKind(kind), value).Object
	}
	return &Response{Code: http.StatusOK, raw: marshal(value)}
}

// errNotServed is the answer to a path that is none of the server's.
var errNotServed = apierrors.NewGenericServerResponse(http.StatusNotFound, "",
	schema.GroupResource{}, "", "404 page not found", 0, true)

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
	for _, name := range k.parts {
		gvk := &k.gvk
		if name == "scale" {
			gvk = &scaleKind
		}
		d.Subresources = append(d.Subresources, apidiscoveryv2.APISubresourceDiscovery{Subresource: name,
			ResponseKind: (*metav1.GroupVersionKind)(gvk), Verbs: []string{"get", "patch", "update"}})
	}
	return d
}
