package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	lassocache "github.com/rancher/lasso/pkg/cache"
	"github.com/rancher/lasso/pkg/client"
	"github.com/rancher/lasso/pkg/controller"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/examples/internal/meaning"
	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// The tests in facts_test.go and facts_queue_test.go pin what docs/frameworks.md says about Lasso.
// They test no code of this program.

var fooResource = v1alpha1.Resource("foos").WithVersion(v1alpha1.GroupVersion.Version)

// oneFoo is an API server with one Foo that never changes, and without Deployments. It needs no
// network, so that a test can run in a bubble.
type oneFoo struct {
	mu     sync.Mutex
	listed []string // resources
}

func (o *oneFoo) RoundTrip(r *http.Request) (*http.Response, error) {
	response := httptest.NewRecorder()
	response.Header().Set("Content-Type", "application/json")
	resource := path.Base(r.URL.Path)
	switch query := r.URL.Query(); {
	case query.Has("sendInitialEvents"):
		response.WriteHeader(http.StatusUnprocessableEntity) // a list does the same, and is shorter
	case query.Has("watch"):
		result := response.Result()
		result.Body, _ = io.Pipe()
		return result, nil
	case resource == "foos", resource == "deployments":
		o.mu.Lock()
		defer o.mu.Unlock()
		o.listed = append(o.listed, resource)
		if resource == "deployments" {
			_ = json.NewEncoder(response).Encode(&appsv1.DeploymentList{
				ListMeta: metav1.ListMeta{ResourceVersion: "1"},
			})
			break
		}
		_ = json.NewEncoder(response).Encode(&v1alpha1.FooList{
			ListMeta: metav1.ListMeta{ResourceVersion: "1"},
			Items:    []v1alpha1.Foo{{ObjectMeta: metav1.ObjectMeta{Name: "web", ResourceVersion: "1"}}},
		})
	}
	return response.Result(), nil
}

func newCaches(
	t *testing.T, api *oneFoo, options *lassocache.SharedCacheFactoryOptions,
) lassocache.SharedCacheFactory {
	t.Helper()
	scheme := must.Get(newScheme())(t)
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(meaning.FooKind, meta.RESTScopeNamespace)
	mapper.Add(appsv1.SchemeGroupVersion.WithKind("Deployment"), meta.RESTScopeNamespace)
	clients := must.Get(client.NewSharedClientFactory(
		&rest.Config{Host: "http://api", Transport: api, UserAgent: "default"},
		&client.SharedClientFactoryOptions{Scheme: scheme, Mapper: mapper}))(t)
	return lassocache.NewSharedCachedFactory(clients, options)
}

func TestOnlyTheEnvironmentSwitchesTheResyncOff(t *testing.T) {
	for name, test := range map[string]struct {
		environment string
		option      time.Duration
		want        []time.Duration // of resyncs in 25 hours
	}{
		"default":                      {"", 0, []time.Duration{10 * time.Hour, 20 * time.Hour}},
		"environment":                  {"0", 0, nil},
		"option":                       {"", 15 * time.Hour, []time.Duration{15 * time.Hour}},
		"option, although environment": {"0", 15 * time.Hour, []time.Duration{15 * time.Hour}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("CATTLE_RESYNC_DEFAULT", test.environment)
			synctest.Test(t, func(t *testing.T) {
				options := &lassocache.SharedCacheFactoryOptions{DefaultResync: test.option}
				caches := newCaches(t, &oneFoo{}, options)
				foos := must.Get(caches.ForKind(meaning.FooKind))(t)
				var got []time.Duration
				begin := time.Now()
				_, err := foos.AddEventHandler(cache.ResourceEventHandlerFuncs{
					UpdateFunc: func(_, _ any) { got = append(got, time.Since(begin)) },
				})
				must.Do(t, errors.Join(err, caches.Start(t.Context())))
				time.Sleep(25 * time.Hour)
				synctest.Wait()
				if keys := foos.GetStore().ListKeys(); len(keys) != 1 {
					t.Fatalf("got the Foos %v, want one", keys)
				}
				if !slices.Equal(got, test.want) {
					t.Errorf("got resyncs after %v, want %v", got, test.want)
				}
			})
		})
	}
}

// brokenClients is an API server that does not answer until it is healthy.
type brokenClients struct {
	client.SharedClientFactory
	healthy atomic.Bool
}

func (c *brokenClients) IsHealthy(context.Context) bool { return c.healthy.Load() }

func TestLassoWaitsForTheAPIServerAlsoAfterAStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clients := &brokenClients{}
		ctx, stop := context.WithCancel(t.Context())
		started := make(chan error, 1)
		go func() { started <- lassocache.NewSharedCachedFactory(clients, nil).Start(ctx) }()
		time.Sleep(time.Hour)
		stop()
		time.Sleep(time.Hour)
		select {
		case err := <-started:
			t.Errorf("Start returned %v, want that it waits", err)
		default:
		}
		clients.healthy.Store(true)
		if err := <-started; err != nil {
			t.Logf("Start returned %v when the API server answered", err)
		}
	})
}

func TestAllWaysLeadToOneControllerOfAKind(t *testing.T) {
	factory := controller.NewSharedControllerFactory(newCaches(t, &oneFoo{}, nil), nil)
	want := factory.ForResourceKind(fooResource, "Foo", true)
	byKind, err := factory.ForKind(meaning.FooKind)
	byObject, err2 := factory.ForObject(&v1alpha1.Foo{})
	byResource := factory.ForResource(fooResource, true)
	must.Do(t, errors.Join(err, err2))
	if byKind != want || byObject != want || byResource != want {
		t.Error("got several controllers of one kind, want one")
	}
}

func TestTheUserAgentIsNotForCachesAndNotForObject(t *testing.T) {
	caches := newCaches(t, &oneFoo{}, nil)
	factory := controller.NewSharedControllerFactoryWithAgent(
		"special", controller.NewSharedControllerFactory(caches, nil))
	byKind, err := factory.ForKind(meaning.FooKind)
	byObject, err2 := factory.ForObject(&v1alpha1.Foo{})
	ofCache, err3 := caches.SharedClientFactory().ForKind(meaning.FooKind)
	must.Do(t, errors.Join(err, err2, err3))
	got := []string{byKind.Client().Config.UserAgent, byObject.Client().Config.UserAgent,
		ofCache.Config.UserAgent}
	if want := []string{"special", "default", "default"}; !slices.Equal(got, want) {
		t.Errorf("got the user agents %v, want %v", got, want)
	}
}

// TestNoCacheBeforeTheFirstHandler shows Lasso's deferred controller. A controller alone costs
// nothing: its cache, with its list and watch, begins with the first handler or key.
func TestNoCacheBeforeTheFirstHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &oneFoo{}
		factory := controller.NewSharedControllerFactory(newCaches(t, api, nil), nil)
		foos, err := factory.ForKind(meaning.FooKind)
		deployments, err2 := factory.ForObject(&appsv1.Deployment{})
		must.Do(t, errors.Join(err, err2))
		start := func(wantLists ...string) {
			t.Helper()
			// It returns when the caches are filled.
			must.Do(t, factory.Start(t.Context(), 1))
			synctest.Wait()
			api.mu.Lock()
			defer api.mu.Unlock()
			if !slices.Equal(api.listed, wantLists) {
				t.Errorf("got lists of %v, want of %v", api.listed, wantLists)
			}
		}
		start()
		nothing := func(_ string, object runtime.Object) (runtime.Object, error) { return object, nil }
		foos.RegisterHandler(t.Context(), "nothing", controller.SharedControllerHandlerFunc(nothing))
		start("foos")
		deployments.Enqueue("default", "web")
		start("foos", "deployments")
	})
}
