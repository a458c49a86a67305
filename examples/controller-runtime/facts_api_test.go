package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"example.com/sample-controller/examples/internal/meaning"
	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// api is an API server that has one Foo. It needs no network, so that a test can run in a bubble.
type api struct {
	mu       sync.Mutex
	forbids  bool
	requests int
	events   int            // that were written
	version  int            // the resourceVersion of the Foo
	watch    *io.PipeWriter // what is written to it is sent as an event
}

func (a *api) RoundTrip(r *http.Request) (*http.Response, error) {
	if path.Base(r.URL.Path) == "events" {
		time.Sleep(time.Second) // as if it were busy
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests++
	response := httptest.NewRecorder()
	response.Header().Set("Content-Type", "application/json")
	var answer any
	switch query := r.URL.Query(); {
	case a.forbids:
		response.WriteHeader(http.StatusForbidden)
	case query.Has("sendInitialEvents"):
		response.WriteHeader(http.StatusUnprocessableEntity) // a list does the same, and is shorter
	case query.Has("watch"):
		result := response.Result()
		result.Body, a.watch = io.Pipe()
		return result, nil
	case path.Base(r.URL.Path) == "events":
		a.events++
		answer = struct{}{}
	case path.Base(r.URL.Path) == "web":
		if r.Method == http.MethodPut {
			a.version++
		}
		answer = fooAt("web", a.version)
	default:
		version := strconv.Itoa(a.version)
		answer = &v1alpha1.FooList{
			TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "FooList"},
			ListMeta: metav1.ListMeta{ResourceVersion: version},
			Items:    []v1alpha1.Foo{*fooAt("web", a.version)},
		}
	}
	err := json.NewEncoder(response).Encode(answer)
	return response.Result(), err
}

func fooAt(name string, version int) *v1alpha1.Foo {
	foo := &v1alpha1.Foo{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: name, ResourceVersion: strconv.Itoa(version),
	}}
	foo.SetGroupVersionKind(meaning.FooKind)
	return foo
}

func (a *api) requested() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.requests
}

func (a *api) written() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.events
}

func (a *api) setForbids(forbids bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.forbids = forbids
}

func (a *api) newManager(t *testing.T, options ctrl.Options) ctrl.Manager {
	t.Helper()
	options.Scheme = runtime.NewScheme()
	must.Do(t, v1alpha1.Install(options.Scheme))
	options.MapperProvider = func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
		mapper := meta.NewDefaultRESTMapper(nil)
		mapper.Add(meaning.FooKind, meta.RESTScopeNamespace)
		return mapper, nil
	}
	options.Metrics.BindAddress = "0"
	options.Controller.SkipNameValidation = new(true)
	return must.Get(ctrl.NewManager(
		&rest.Config{Host: "http://api", Transport: a, QPS: -1}, options))(t)
}

func (a *api) startManager(t *testing.T, options ctrl.Options) ctrl.Manager {
	t.Helper()
	mgr := a.newManager(t, options)
	go func() { _ = mgr.Start(t.Context()) }()
	synctest.Wait()
	return mgr
}
