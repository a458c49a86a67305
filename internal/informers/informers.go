// Package informers starts the informers of a controller, says whether their caches are filled, and
// gives up when they cannot be. An informer alone would try again for ever.
package informers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/cache"
)

// watchErrorGrace is how long a permission or a resource may be missing once the caches were
// filled.
const watchErrorGrace = 30 * time.Second

// Factory is what a generated SharedInformerFactory of any API group can do.
type Factory interface {
	StartWithContext(context.Context)
	WaitForCacheSyncWithContext(context.Context) cache.SyncResult
}

// Group is the informers of a controller, which are started together.
type Group struct {
	Factories []Factory
	Informers []cache.SharedIndexInformer // of these factories
	// SyncTimeout is how long the first lists may take; the flag --cache-sync-timeout.
	SyncTimeout time.Duration
	// InstallHint says what to do if the API server does not serve one of the resources.
	InstallHint string

	synced atomic.Bool
}

// Start starts the informers, which run until background is done, and waits until their caches are
// filled; if ctx is done before that, it returns nil. When an informer meets an error later that
// waiting does not mend, it calls fail.
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

// Check is a check of readiness. It fails until the caches are filled.
func (g *Group) Check(*http.Request) error {
	if !g.synced.Load() {
		return errors.New("the informers' caches are not synced")
	}
	return nil
}

// watchErrorHandler fails on errors that waiting does not mend: a resource that the API server does
// not serve, and a missing permission. A reflector alone would log them for ever. Once the caches
// were filled, they must go on for watchErrorGrace: an API server that is starting forbids for a
// moment what it will allow.
func (g *Group) watchErrorHandler(fail context.CancelCauseFunc) cache.WatchErrorHandlerWithContext {
	var since, last time.Time // of the errors in a row
	return func(ctx context.Context, reflector *cache.Reflector, err error) {
		hint := ""
		switch {
		case apierrors.IsNotFound(err):
			hint = g.InstallHint
		case apierrors.IsForbidden(err):
			hint = "grant it, or narrow the watch with --namespace"
		default:
			cache.DefaultWatchErrorHandler(ctx, reflector, err)
			return
		}
		if time.Since(last) > 3*watchErrorGrace {
			since = time.Now() // the first in a row: a reflector tries again within 60s
		}
		last = time.Now()
		if g.synced.Load() && time.Since(since) < watchErrorGrace {
			cache.DefaultWatchErrorHandler(ctx, reflector, err)
			return
		}
		fail(fmt.Errorf("%w; %s", err, hint))
	}
}

// StripManagedFields is a transform of what is cached. managedFields are often the larger part of
// an object, and controllers do not read them.
func StripManagedFields(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}
