package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	lassocache "github.com/rancher/lasso/pkg/cache"
	"github.com/rancher/lasso/pkg/client"
	"github.com/rancher/lasso/pkg/controller"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/rest/fake"

	"example.com/sample-controller/examples/internal/meaning"
	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// These tests show what docs/frameworks.md says about Lasso's concepts. They test no code of this
// program.

func TestLassoMakesWhatAKindNeedsOnceAndWithItsFirstUse(t *testing.T) {
	for name, use := range map[string]func(context.Context, controller.SharedController){
		"handler": func(ctx context.Context, c controller.SharedController) { c.RegisterHandler(ctx, "", nil) },
		"key":     func(_ context.Context, c controller.SharedController) { c.EnqueueKey("default/web") },
		"cache":   func(_ context.Context, c controller.SharedController) { c.Informer() },
	} {
		synctest.Test(t, func(t *testing.T) {
			paths := make(chan string, 100) // of requests
			api := fake.CreateHTTPClient(func(r *http.Request) (*http.Response, error) {
				paths <- r.URL.Path
				body := io.ReadCloser(http.NoBody)
				if r.URL.Query().Has("watch") {
					body, _ = io.Pipe() // no event ever comes
				}
				return &http.Response{StatusCode: http.StatusOK, Body: body,
					Header: http.Header{"Content-Type": {"application/json"}}}, nil
			})
			mapper := meta.NewDefaultRESTMapper(nil)
			mapper.Add(meaning.FooKind, meta.RESTScopeNamespace)
			clients := must.Get(client.NewSharedClientFactory(
				&rest.Config{Host: "http://api", Transport: api.Transport},
				&client.SharedClientFactoryOptions{Mapper: mapper, Scheme: must.Get(newScheme())(t)}))(t)
			factory := controller.NewSharedControllerFactory(
				lassocache.NewSharedCachedFactory(clients, nil), nil)
			foos := must.Get(factory.ForKind(meaning.FooKind))(t)
			if must.Get(factory.ForObject(&v1alpha1.Foo{}))(t) != foos {
				t.Error("got a second controller for the same kind")
			}
			must.Do(t, factory.Start(t.Context(), 1))
			synctest.Wait()
			if got := <-paths; got != "/version" || len(paths) > 0 {
				t.Errorf("got a request of %s and %d others, want /version only", got, len(paths))
			}
			use(t.Context(), foos)
			go func() { _ = factory.Start(t.Context(), 1) }()
			if got := <-paths; !strings.HasSuffix(got, "/foos") {
				t.Errorf("%s: got a request of %s, want one of Foos", name, got)
			}
		})
	}
}

// All handlers of a kind share a queue. One that fails makes the sync of the key fail, so all are
// called again.
func Example_handlersOfAKindAreCalledTogether() {
	handlers := &controller.SharedHandler{}
	for _, name := range []string{"fails", "succeeds"} {
		handlers.Register(context.Background(), name, controller.SharedControllerHandlerFunc(
			func(key string, object runtime.Object) (runtime.Object, error) {
				fmt.Println(name, key)
				if name == "fails" {
					return object, errors.New("injected")
				}
				return object, nil
			}))
	}
	fmt.Println("error:", handlers.OnChange("default/web", nil) != nil)
	// Output:
	// fails default/web
	// succeeds default/web
	// error: true
}
