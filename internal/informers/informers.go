// Package informers starts the informers of a controller, says whether their caches are filled, and
// gives up if they cannot be filled. An informer alone would retry for ever.
package informers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// A permission is missing for good if a reflector has met that error so often, for so long. In 30s,
// it meets a lasting error five or six times. An API server that restarts causes one such error or
// two.
const (
	watchErrorTimes = 5
	watchErrorGrace = 30 * time.Second
)

// WaitUntilServed waits so long for a resource, and asks so often.
const (
	servedGrace = 15 * time.Second
	servedEvery = 500 * time.Millisecond
)

// Factory is the part of a generated SharedInformerFactory, of any API group, that a Group needs.
type Factory interface {
	StartWithContext(context.Context)
	WaitForCacheSyncWithContext(context.Context) cache.SyncResult
}

// Group holds the informers of a controller, to start them together.
type Group struct {
	Factories []Factory
	Informers []cache.SharedIndexInformer // of these factories
	// SyncTimeout is how long the first lists may take; the flag --cache-sync-timeout.
	SyncTimeout time.Duration
	// InstallHint says what to do if the API server does not serve one of the resources.
	InstallHint string

	synced atomic.Bool
}

// Start starts the informers and waits until their caches are filled. If ctx is done before that,
// it returns nil. The informers run until background is done. They call fail after an error that
// does not go away by waiting.
func (g *Group) Start(ctx, background context.Context, fail context.CancelCauseFunc) error {
	for _, informer := range g.Informers {
		err := informer.SetWatchErrorHandlerWithContext(g.watchErrorHandler(fail))
		if err != nil {
			return fmt.Errorf("preparing an informer: %w", err)
		}
	}
	syncCtx, cancel := context.WithTimeoutCause(ctx, g.SyncTimeout,
		fmt.Errorf("no answer within --cache-sync-timeout=%v", g.SyncTimeout))
	defer cancel()
	for _, factory := range g.Factories {
		factory.StartWithContext(background)
	}
	for _, factory := range g.Factories {
		err := factory.WaitForCacheSyncWithContext(syncCtx).AsError()
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("waiting for the informers' caches: %w", err)
		}
	}
	g.synced.Store(ctx.Err() == nil)
	return nil
}

// Check is a readiness check. It fails until the caches are filled.
func (g *Group) Check(*http.Request) error {
	if !g.synced.Load() {
		return errors.New("the informers' caches are not synced")
	}
	return nil
}

// watchErrorHandler calls fail after errors that do not go away by waiting: a resource that the API
// server does not serve (see WaitUntilServed), and a missing permission. A reflector alone would
// log them for ever. Once the caches have been filled, a missing permission has to last: an API
// server that is starting may forbid what it will soon allow.
func (g *Group) watchErrorHandler(fail context.CancelCauseFunc) cache.WatchErrorHandlerWithContext {
	var since, last time.Time // the first and the last error in a row
	var times int
	return func(ctx context.Context, reflector *cache.Reflector, err error) {
		if apierrors.IsNotFound(err) {
			fail(fmt.Errorf("%w; %s", err, g.InstallHint))
			return
		}
		if !apierrors.IsForbidden(err) {
			cache.DefaultWatchErrorHandler(ctx, reflector, err)
			return
		}
		if time.Since(last) > 3*watchErrorGrace {
			since, times = time.Now(), 0 // the first in a row: a reflector retries within 60s
		}
		last = time.Now()
		times++
		if g.synced.Load() && (times < watchErrorTimes || time.Since(since) < watchErrorGrace) {
			cache.DefaultWatchErrorHandler(ctx, reflector, err)
			return
		}
		fail(fmt.Errorf("%w; grant it, or narrow the watch with --namespace", err))
	}
}

// WaitUntilServed wraps the transport of a client. If the API server does not serve a resource, a
// list or watch waits up to 15s for it. So informers soon see a CustomResourceDefinition that is
// made again. A reflector that got errors instead would wait longer after each, up to a minute.
//
// It is a workaround: net/http asks a RoundTripper not to interpret answers. A ListWatch would be the
// place for it, but the generated factories make their own.
func WaitUntilServed(next http.RoundTripper) http.RoundTripper { return waiter{next} }

type waiter struct{ next http.RoundTripper }

func (w waiter) RoundTrip(r *http.Request) (*http.Response, error) {
	for begin := time.Now(); ; {
		response, err := w.next.RoundTrip(r)
		if err != nil || isServed(r, response) || time.Since(begin) >= servedGrace {
			return response, err
		}
		_ = response.Body.Close() // nothing of it is needed
		klog.FromContext(r.Context()).Info("Not served by the API server; trying again",
			"path", r.URL.Path)
		select {
		case <-time.After(servedEvery):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
}

// isServed reports whether the API server knows the resource of a list or watch. A missing object
// is a Status in JSON or Protobuf; what is not served, plain text.
func isServed(r *http.Request, response *http.Response) bool {
	query := r.URL.Query()
	isList := query.Has("watch") || query.Has("resourceVersion") || query.Has("limit")
	return !isList || response.StatusCode != http.StatusNotFound ||
		!strings.HasPrefix(response.Header.Get("Content-Type"), "text/plain")
}

// StripManagedFields is a transform for informers. It drops managedFields, which are often the
// larger part of an object, and which controllers seldom read.
func StripManagedFields(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}
