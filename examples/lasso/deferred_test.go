package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"sync"
	"testing"

	"github.com/rancher/lasso/pkg/controller"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"example.com/sample-controller/examples/internal/meaning"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// TestNoCacheBeforeTheFirstHandler shows Lasso's deferred controller. A controller alone costs
// nothing: its cache, with its list and watch, begins with the first handler or key.
func TestNoCacheBeforeTheFirstHandler(t *testing.T) {
	server := newServer(t)
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	factory, err := newFactory(&rest.Config{Host: server.URL}, scheme)
	if err != nil {
		t.Fatal(err)
	}
	foos, err := factory.ForKind(meaning.FooKind)
	if err != nil {
		t.Fatal(err)
	}
	deployments, err := factory.ForObject(&appsv1.Deployment{})
	if err != nil {
		t.Fatal(err)
	}
	start := func(wantCaches ...string) {
		t.Helper()
		// It returns when the caches are filled. By then, all their requests have been made.
		if err := factory.Start(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		if got := server.caches(); !slices.Equal(got, wantCaches) {
			t.Errorf("got requests for the caches of %v, want %v", got, wantCaches)
		}
	}

	start()

	nothing := func(_ string, object runtime.Object) (runtime.Object, error) { return object, nil }
	foos.RegisterHandler(t.Context(), "nothing", controller.SharedControllerHandlerFunc(nothing))
	start("foos")

	deployments.Enqueue("default", "web")
	start("deployments", "foos")
}

// server is an API server that knows Foos and Deployments, and has none of them.
type server struct {
	*httptest.Server
	mu        sync.Mutex
	requested []string
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	t.Cleanup(s.CloseClientConnections) // of watches, which Close would wait for
	return s
}

// caches returns the resources whose objects were requested, each once.
func (s *server) caches() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Compact(slices.Sorted(slices.Values(s.requested)))
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	resource := path.Base(r.URL.Path)
	if resource == "foos" || resource == "deployments" {
		s.mu.Lock()
		s.requested = append(s.requested, resource)
		s.mu.Unlock()
		if r.URL.Query().Has("sendInitialEvents") {
			w.WriteHeader(http.StatusUnprocessableEntity) // so that the client lists, which is shorter here
			return
		}
		if r.URL.Query().Has("watch") {
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return
		}
	}
	answer, ok := answers[r.URL.Path]
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

var (
	apps  = metav1.GroupVersion(appsv1.SchemeGroupVersion)
	kinds = map[string]string{"foos": "Foo", "deployments": "Deployment"}
)

// answers are the answers of an API server, by path.
var answers = map[string]any{
	"/version": map[string]string{},
	"/api":     metav1.APIVersions{},
	"/apis": metav1.APIGroupList{Groups: []metav1.APIGroup{
		group(v1alpha1.GroupVersion), group(apps),
	}},
	"/apis/" + v1alpha1.GroupVersion.String(): resources(v1alpha1.GroupVersion, "foos"),
	"/apis/" + apps.String():                  resources(apps, "deployments"),
	"/apis/" + v1alpha1.GroupVersion.String() + "/foos": v1alpha1.FooList{
		ListMeta: metav1.ListMeta{ResourceVersion: "1"},
	},
	"/apis/" + apps.String() + "/deployments": appsv1.DeploymentList{
		ListMeta: metav1.ListMeta{ResourceVersion: "1"},
	},
}

func group(version metav1.GroupVersion) metav1.APIGroup {
	discovery := metav1.GroupVersionForDiscovery{
		GroupVersion: version.String(), Version: version.Version,
	}
	return metav1.APIGroup{
		Name: version.Group, PreferredVersion: discovery,
		Versions: []metav1.GroupVersionForDiscovery{discovery},
	}
}

func resources(version metav1.GroupVersion, name string) metav1.APIResourceList {
	return metav1.APIResourceList{
		GroupVersion: version.String(),
		APIResources: []metav1.APIResource{{Name: name, Kind: kinds[name], Namespaced: true}},
	}
}
