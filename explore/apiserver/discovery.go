package apiserver

import (
	"net/http"
	"slices"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// discover answers what is not about objects.
func (s *Server) discover(r *Request) (*Response, error) {
	parts := strings.Split(strings.Trim(r.Path, "/"), "/")
	aggregated := strings.Contains(r.accept, "as=APIGroupDiscoveryList")
	switch {
	case r.Path == "/healthz" || r.Path == "/readyz" || r.Path == "/livez":
		return &Response{Code: http.StatusOK, text: "ok"}, nil
	case r.Path == "/version":
		return &Response{Code: http.StatusOK, body: version.Info{Major: "1", Minor: "37",
			GitVersion: "v1.37.2"}}, nil
	case len(parts) == 1 && (parts[0] == "api" || parts[0] == "apis") && aggregated:
		return &Response{Code: http.StatusOK, body: s.aggregated(parts[0] == "api"), media: "application/json" +
			";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}, nil
	case len(parts) == 1 && parts[0] == "api":
		return &Response{Code: http.StatusOK, body: metav1.APIVersions{TypeMeta: metav1.TypeMeta{
			Kind: "APIVersions", APIVersion: "v1"}, Versions: []string{"v1"}}}, nil
	case len(parts) == 1 && parts[0] == "apis":
		return &Response{Code: http.StatusOK, body: s.groupList()}, nil
	case len(parts) == 2 && parts[0] == "apis":
		if group := s.group(parts[1]); group != nil {
			return &Response{Code: http.StatusOK, body: group}, nil
		}
	case len(parts) == 2 && parts[0] == "api":
		return s.resources(schema.GroupVersion{Version: parts[1]})
	case len(parts) == 3 && parts[0] == "apis":
		return s.resources(schema.GroupVersion{Group: parts[1], Version: parts[2]})
	}
	return nil, notFound()
}

// notFound is the answer to a path that is none of the server's.
func notFound() error {
	return apierrors.NewGenericServerResponse(http.StatusNotFound, "", schema.GroupResource{}, "",
		"404 page not found", 0, true)
}

// served returns the served kinds of a group and version, both if they are not empty, in order.
func (s *Server) served(group, version string) []*kind {
	var kinds []*kind
	for _, k := range s.kinds {
		if k.gvr.Group == group && (version == "" || k.gvr.Version == version) {
			kinds = append(kinds, k)
		}
	}
	slices.SortFunc(kinds, func(a, b *kind) int { return strings.Compare(a.gvr.Resource, b.gvr.Resource) })
	return kinds
}

// versions returns the versions of a group, the best one first.
func (s *Server) versions(group string) []string {
	var versions []string
	for _, k := range s.served(group, "") {
		if !slices.Contains(versions, k.gvr.Version) {
			versions = append(versions, k.gvr.Version)
		}
	}
	slices.SortFunc(versions, func(a, b string) int { return compareVersions(b, a) })
	return versions
}

// groups returns the names of all groups but the core one, in order.
func (s *Server) groups() []string {
	var groups []string
	for resource := range s.kinds {
		if resource.Group != "" && !slices.Contains(groups, resource.Group) {
			groups = append(groups, resource.Group)
		}
	}
	slices.Sort(groups)
	return groups
}

func (s *Server) group(name string) *metav1.APIGroup {
	group := &metav1.APIGroup{TypeMeta: metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}, Name: name}
	for _, version := range s.versions(name) {
		group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{
			GroupVersion: name + "/" + version, Version: version})
	}
	if len(group.Versions) == 0 {
		return nil
	}
	group.PreferredVersion = group.Versions[0]
	return group
}

func (s *Server) groupList() *metav1.APIGroupList {
	list := &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	for _, name := range s.groups() {
		list.Groups = append(list.Groups, *s.group(name))
	}
	return list
}

// subresource is one of a kind, with the verbs of discovery.
type subresource struct {
	name  string
	kind  schema.GroupVersionKind
	verbs metav1.Verbs
}

func (k *kind) subresources() []subresource {
	var result []subresource
	verbs := metav1.Verbs{"get", "patch", "update"}
	if k.status {
		result = append(result, subresource{"status", k.gvk, verbs})
	}
	if k.scale != nil {
		result = append(result, subresource{"scale", scaleKind, verbs})
	}
	return result
}

// resources answers which resources a version of a group has.
func (s *Server) resources(gv schema.GroupVersion) (*Response, error) {
	list := &metav1.APIResourceList{GroupVersion: gv.String(),
		TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}}
	for _, k := range s.served(gv.Group, gv.Version) {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: k.gvr.Resource,
			SingularName: k.names.Singular, Namespaced: k.namespaced, Kind: k.gvk.Kind, Verbs: verbs,
			ShortNames: k.names.ShortNames, Categories: k.names.Categories})
		for _, sub := range k.subresources() {
			resource := metav1.APIResource{Name: k.gvr.Resource + "/" + sub.name, Namespaced: k.namespaced,
				Kind: sub.kind.Kind, Verbs: sub.verbs}
			if sub.kind != k.gvk {
				resource.Group, resource.Version = sub.kind.Group, sub.kind.Version
			}
			list.APIResources = append(list.APIResources, resource)
		}
	}
	if len(list.APIResources) == 0 {
		return nil, notFound()
	}
	return &Response{Code: http.StatusOK, body: list}, nil
}

// aggregated is all discovery in one answer: that of the core group, or that of the others.
func (s *Server) aggregated(core bool) *apidiscoveryv2.APIGroupDiscoveryList {
	list := &apidiscoveryv2.APIGroupDiscoveryList{TypeMeta: metav1.TypeMeta{
		Kind: "APIGroupDiscoveryList", APIVersion: "apidiscovery.k8s.io/v2"}}
	groups := []string{""}
	if !core {
		groups = s.groups()
	}
	for _, name := range groups {
		group := apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for _, version := range s.versions(name) {
			discovery := apidiscoveryv2.APIVersionDiscovery{Version: version,
				Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent}
			for _, k := range s.served(name, version) {
				discovery.Resources = append(discovery.Resources, k.discovery())
			}
			group.Versions = append(group.Versions, discovery)
		}
		list.Items = append(list.Items, group)
	}
	return list
}

// discovery returns what aggregated discovery says of a kind.
func (k *kind) discovery() apidiscoveryv2.APIResourceDiscovery {
	gvk := metav1.GroupVersionKind(k.gvk)
	d := apidiscoveryv2.APIResourceDiscovery{Resource: k.gvr.Resource, ResponseKind: &gvk, Verbs: verbs,
		Scope: apidiscoveryv2.ScopeCluster, SingularResource: k.names.Singular,
		ShortNames: k.names.ShortNames, Categories: k.names.Categories}
	if k.namespaced {
		d.Scope = apidiscoveryv2.ScopeNamespace
	}
	for _, sub := range k.subresources() {
		gvk := metav1.GroupVersionKind(sub.kind)
		d.Subresources = append(d.Subresources, apidiscoveryv2.APISubresourceDiscovery{
			Subresource: sub.name, ResponseKind: &gvk, Verbs: sub.verbs})
	}
	return d
}

// reviews are what is asked for access, and the answers. They are not stored.
var reviews = map[string]map[string]any{
	"selfsubjectaccessreviews": {"allowed": true}, "subjectaccessreviews": {"allowed": true},
	"localsubjectaccessreviews": {"allowed": true},
	"tokenreviews":              {"authenticated": true, "user": map[string]any{"username": "admin"}},
	"selfsubjectreviews":        {"userInfo": map[string]any{"username": "admin"}},
}

// reviewKinds are the kinds of the reviews.
var reviewKinds = map[string]string{"selfsubjectaccessreviews": "SelfSubjectAccessReview",
	"subjectaccessreviews": "SubjectAccessReview", "tokenreviews": "TokenReview",
	"localsubjectaccessreviews": "LocalSubjectAccessReview", "selfsubjectreviews": "SelfSubjectReview"}

// reviewKind returns the kind of a review, or nil.
func reviewKind(resource schema.GroupVersionResource) *kind {
	name, ok := reviewKinds[resource.Resource]
	if !ok || !strings.HasSuffix(resource.Group, ".k8s.io") {
		return nil
	}
	return &kind{gvk: resource.GroupVersion().WithKind(name),
		gvr: resource, review: true}
}

// review answers that everything is allowed.
func review(r *Request) *Response {
	object := &unstructured.Unstructured{Object: deepCopy(r.Body.Object)}
	object.Object["status"] = deepCopy(reviews[r.Resource.Resource])
	return &Response{Code: http.StatusCreated, Object: object}
}
