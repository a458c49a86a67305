package outside

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// connect waits until the store is there.
func (p *Process) connect(ctx, _ context.Context) error {
	return wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		err := p.controller.Connect(ctx)
		if err != nil {
			klog.FromContext(ctx).Info("Waiting for the store of the Foos", "err", err)
		}
		return err == nil, nil
	})
}

func (p *Process) ready(r *http.Request) error {
	return errors.Join(p.controller.Check(r), p.Informers.Check(r))
}

// work syncs the keys of the queue until ctx is done, and then finishes the syncs that have begun.
func (p *Process) work(ctx context.Context, count int) {
	var workers sync.WaitGroup
	defer workers.Wait()
	defer p.Queue.ShutDown()
	if !cache.WaitFor(ctx, "", p.synced...) {
		return
	}
	klog.FromContext(ctx).Info("Starting the workers", "count", count)
	for range count {
		workers.Go(func() {
			for ctx.Err() == nil && p.processNextWorkItem(ctx) {
			}
		})
	}
	<-ctx.Done()
}

// processNextWorkItem waits for a key and syncs it. It returns false when the queue is shut down.
func (p *Process) processNextWorkItem(ctx context.Context) bool {
	key, shutdown := p.Queue.Get()
	if shutdown {
		return false
	}
	defer p.Queue.Done(key)
	if !p.FooWrites.Seen(key) || !p.Children.Seen(key) {
		p.Queue.AddAfter(key, staleRetryDelay)
		return true
	}
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "foo", key)
	syncCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), syncTimeout)
	defer cancel()
	err := p.controller.SyncHandler(klog.NewContext(syncCtx, logger), key)
	SyncErrors.Count(err)
	switch {
	case err == nil:
		p.Queue.Forget(key)
		return true
	case apierrors.IsConflict(err): // somebody else wrote in between
		logger.V(4).Info("Retrying after a conflict", "err", err)
	default:
		utilruntime.HandleErrorWithContext(ctx, err, "Syncing failed, will retry", "foo", key)
	}
	p.Queue.AddRateLimited(key)
	return true
}
