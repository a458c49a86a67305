package main

import (
	"context"
	"errors"
	"slices"
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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

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
		controller.HandlerFunc(func(key string, _ runtime.Object) error {
			return sync(key)
		}), nil)
	must.Do(t, lasso.Start(ctx, 1))
	synctest.Wait()
	return lasso
}

func TestLassoDelaysWhatIsEnqueuedByNameAndNotByKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		synced := map[string]time.Duration{}
		lasso := startLasso(t.Context(), t, func(key string) error {
			synced[key] = time.Since(begin)
			return nil
		})

		lasso.EnqueueKey("default/by-key")
		lasso.Enqueue("default", "by-name")
		time.Sleep(time.Second)
		synctest.Wait()

		if at, ok := synced["default/by-key"]; !ok || at != 0 {
			t.Errorf("synced by key after %v (%v), want at once", at, ok)
		}
		if at := synced["default/by-name"]; at != 5*time.Millisecond {
			t.Errorf("synced by name after %v, want 5ms", at)
		}
	})
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
