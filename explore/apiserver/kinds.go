package apiserver

import (
	"cmp"
	_ "embed"
	"maps"
	"net/http"
	"path"
	"reflect"
	"slices"
	"strings"
	"sync"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// Table is what Kubernetes' own code says of its kinds. TestTable of explore/board/kinds writes it.
type Table struct {
	Resources map[string]Traits         // by apiVersion and resource: apps/v1/deployments
	Defaults  map[string]map[string]any // that do not depend on other fields, by TypeName
}

// TypeName returns what a Go type is called in Defaults, such as core/v1.PodSpec.
func TypeName(t reflect.Type) string {
	return strings.TrimPrefix(t.PkgPath(), "k8s.io/api/") + "." + t.Name()
}

// Traits is what the API server has to know of a resource.
type Traits struct {
	Kind             string
	Namespaced       bool     `json:",omitempty"`
	Generation       bool     `json:",omitempty"` // a change of the spec increments metadata.generation
	Conditional      bool     `json:",omitempty"` // an update must name the resourceVersion
	CreatedByUpdate  bool     `json:",omitempty"` // an update may create an object
	ReturnedByDelete bool     `json:",omitempty"` // a delete returns the object
	ShortNames       []string `json:",omitempty"`
	Categories       []string `json:",omitempty"`
	Subresources     []string `json:",omitempty"`
	Fields           []string `json:",omitempty"` // field selectors, apart from the metadata's
}

//go:embed zz_generated.kinds.json
var tableText []byte

var builtinTable = sync.OnceValue(func() *Table {
	t := &Table{}
	return must(t, json.Unmarshal(tableText, t))
})

// kind is a kind of objects that a server serves. Servers share kinds, so that nothing in one
// changes.
type kind struct {
	Traits
	gvk       schema.GroupVersionKind
	gvr       schema.GroupVersionResource
	goType    reflect.Type // nil for a custom resource
	singular  string       // name of the resource
	listKind  string
	custom    *customKind
	real      Kinds // nil for a custom resource, and without BuiltinKinds
	converter func() managedfields.TypeConverter
}

func (k *kind) has(subresource string) bool { return slices.Contains(k.Subresources, subresource) }

// is reports whether this is a built-in resource of that name.
func (k *kind) is(resource string) bool { return k.custom == nil && k.gvr.Resource == resource }

// Kinds does with objects of Kubernetes' own kinds what a real API server does. The package
// explore/board/kinds has it. Without it, such objects do not have all defaults that depend on other
// fields, and only their metadata and the types of their fields are validated.
type Kinds interface {
	// Default brings an object into the form in which it is stored.
	Default(object *unstructured.Unstructured) error
	// Finish does what admission and the strategy of a kind do with an object that is new (old is nil),
	// or that is to replace another one, and validates it.
	Finish(r *Request, object, old *unstructured.Unstructured) error
}

// BuiltinKinds is used by each server of this program, if it is set before the first one is made.
var BuiltinKinds Kinds

// builtin are Kubernetes' own kinds, each in its best version.
var builtin = sync.OnceValue(func() map[schema.GroupVersionResource]*kind {
	kinds := map[schema.GroupVersionResource]*kind{}
	for name, traits := range builtinTable().Resources {
		apiVersion, resource := path.Split(name)
		gv := must(schema.ParseGroupVersion(strings.TrimSuffix(apiVersion, "/")))
		gvk, gvr := gv.WithKind(traits.Kind), gv.WithResource(resource)
		k := &kind{Traits: traits, gvk: gvk, gvr: gvr, real: BuiltinKinds,
			goType: scheme.Scheme.KnownTypes(gv)[traits.Kind], converter: builtinConverter,
			singular: strings.ToLower(traits.Kind), listKind: traits.Kind + "List"}
		k.Subresources = slices.DeleteFunc(slices.Clone(k.Subresources), func(name string) bool {
			return name == "scale" || k.real == nil && name != "status" && name != "finalize"
		})
		kinds[gvr] = k
	}
	return kinds
})

// Mapper is a MapperProvider for controller-runtime: what it returns knows the kinds of the server
// of a Config, without a request.
func Mapper(config *rest.Config, _ *http.Client) (meta.RESTMapper, error) {
	mapper := meta.NewDefaultRESTMapper(nil)
	for gvr, k := range config.Transport.(client).server.kinds {
		scope := meta.RESTScopeRoot
		if k.Namespaced {
			scope = meta.RESTScopeNamespace
		}
		mapper.AddSpecific(k.gvk, gvr, gvr.GroupVersion().WithResource(k.singular), scope)
	}
	return mapper, nil
}

// discover answers what is not about objects.
func (s *Server) discover(r *Request) (*Response, error) {
	path := strings.Trim(r.Path, "/")
	prefix, name, _ := strings.Cut(path, "/")
	all := s.discovery(prefix == "api")
	groups, resources, _ := discovery.SplitGroupsAndResources(*all)
	gv, _ := schema.ParseGroupVersion(name)
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

func (k *kind) discovery() apidiscoveryv2.APIResourceDiscovery {
	d := apidiscoveryv2.APIResourceDiscovery{Resource: k.gvr.Resource, Scope: apidiscoveryv2.ScopeCluster,
		SingularResource: k.singular, ResponseKind: (*metav1.GroupVersionKind)(&k.gvk),
		ShortNames: k.ShortNames, Categories: k.Categories,
		Verbs: strings.Fields("create delete deletecollection get list patch update watch")}
	if k.Namespaced {
		d.Scope = apidiscoveryv2.ScopeNamespace
	}
	for _, name := range k.Subresources {
		d.Subresources = append(d.Subresources, apidiscoveryv2.APISubresourceDiscovery{Subresource: name,
			ResponseKind: (*metav1.GroupVersionKind)(&k.gvk), Verbs: []string{"get", "patch", "update"}})
	}
	return d
}
