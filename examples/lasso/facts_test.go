package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	lassocache "github.com/rancher/lasso/pkg/cache"
	"github.com/rancher/lasso/pkg/client"
	"github.com/rancher/lasso/pkg/controller"
	"github.com/rancher/lasso/pkg/log"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/rest/fake"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/examples/internal/meaning"
	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// These tests pin what docs/frameworks.md says about Lasso. They test no code of this program.

// emptyInformer is synced, and has no objects.
type emptyInformer struct{ cache.SharedIndexInformer }

func (emptyInformer) HasSynced() bool { return true }

// startLasso starts a controller of Lasso with one worker in a bubble.
func startLasso(
	ctx context.Context, t *testing.T, sync func(key string) error,
) controller.Controller {
	t.Helper()
	informer := cache.NewSharedIndexInformer(
		&cache.ListWatch{}, &v1alpha1.Foo{}, 0, cache.Indexers{})
	lasso := controller.New("", emptyInformer{informer},
		func(context.Context) error { return nil },
		controller.HandlerFunc(func(key string, object runtime.Object) error {
			if object != nil {
				t.Errorf("got the object %v for a key that the cache does not have", object)
			}
			return sync(key)
		}), nil)
	must.Do(t, lasso.Start(ctx, 1))
	synctest.Wait()
	return lasso
}

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

func TestLassoGoesOnUntilTheQueueIsEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex
		var synced []string
		lasso := startLasso(ctx, t, func(key string) error {
			time.Sleep(time.Second)
			mu.Lock()
			defer mu.Unlock()
			synced = append(synced, key)
			return nil
		})
		for _, key := range []string{"default/a", "default/b", "default/c"} {
			lasso.EnqueueKey(key)
		}
		synctest.Wait() // the first is being synced

		cancel()
		time.Sleep(time.Minute)

		mu.Lock()
		defer mu.Unlock()
		if len(synced) != 3 {
			t.Errorf("got %v synced, want all three: then stop can be simpler", synced)
		}
	})
}

func TestEachEnqueueMakesAFailingKeyWaitTwiceAsLong(t *testing.T) {
	for name, test := range map[string]struct {
		enqueue func(controller.Controller)
		want    int // milliseconds between the first sync, which fails, and the second
	}{
		"EnqueueKey": {func(c controller.Controller) { c.EnqueueKey("default/web") }, 5},
		"Enqueue":    {func(c controller.Controller) { c.Enqueue("default", "web") }, 5120},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var syncs []time.Time
				proceed := make(chan struct{})
				lasso := startLasso(t.Context(), t, func(key string) error {
					if key == "default/before" {
						<-proceed
						return nil
					}
					syncs = append(syncs, time.Now())
					if len(syncs) == 1 {
						return errors.New("injected")
					}
					return nil
				})
				lasso.EnqueueKey("default/before") // keeps the worker busy
				synctest.Wait()
				for range 10 {
					test.enqueue(lasso)
				}
				close(proceed)
				time.Sleep(time.Minute)
				synctest.Wait()
				want := time.Duration(test.want) * time.Millisecond
				if len(syncs) != 2 || syncs[1].Sub(syncs[0]) != want {
					t.Errorf("got syncs at %v, want two with %v between them", syncs, want)
				}
			})
		})
	}
}

func TestLassoRetriesAConflictWithoutLoggingIt(t *testing.T) {
	conflict := apierrors.NewConflict(v1alpha1.Resource("foos"), "web", errors.New(
		"the object has been modified; please apply your changes to the latest version and try again"))
	for name, test := range map[string]struct {
		err  error
		want int32 // entries in the log
	}{"conflict": {conflict, 0}, "any other": {errors.New("injected"), 1}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var logged atomic.Int32
				before := log.Errorf
				t.Cleanup(func() { log.Errorf = before })
				log.Errorf = func(string, ...any) { logged.Add(1) }
				syncs := 0
				lasso := startLasso(t.Context(), t, func(string) error {
					if syncs++; syncs == 1 {
						return test.err
					}
					return nil
				})
				lasso.EnqueueKey("default/web")
				time.Sleep(time.Minute)
				synctest.Wait()
				if syncs != 2 || logged.Load() != test.want {
					t.Errorf("got %d syncs and %d errors in the log, want 2 and %d",
						syncs, logged.Load(), test.want)
				}
			})
		})
	}
}

func TestIfOneHandlerOfAKindFailsAllAreCalledAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls []string
		handlers := &controller.SharedHandler{}
		for _, name := range []string{"fails once", "succeeds"} {
			handlers.Register(t.Context(), name, controller.SharedControllerHandlerFunc(
				func(_ string, object runtime.Object) (runtime.Object, error) {
					calls = append(calls, name)
					if len(calls) == 1 {
						return object, errors.New("injected")
					}
					return object, nil
				}))
		}
		lasso := startLasso(t.Context(), t, func(key string) error { return handlers.OnChange(key, nil) })
		lasso.EnqueueKey("default/web")
		time.Sleep(time.Minute)
		synctest.Wait()
		want := []string{"fails once", "succeeds", "fails once", "succeeds"}
		if !slices.Equal(calls, want) {
			t.Errorf("got the calls %q, want %q", calls, want)
		}
	})
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
