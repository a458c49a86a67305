package main

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

	"example.com/sample-controller/internal/patch"
)

// connect waits until the buckets are there.
func (c *Controller) connect(ctx, _ context.Context) error {
	return wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		err := c.openBuckets(ctx)
		if err != nil {
			klog.FromContext(ctx).Info("Waiting for the buckets", "err", err)
		}
		return err == nil, nil
	})
}

func (c *Controller) ready(r *http.Request) error {
	return errors.Join(c.Check(r), c.Informers.Check(r))
}

// work syncs the keys of the queue until ctx is done, and then finishes the syncs that have begun.
func (c *Controller) work(ctx context.Context, count int) {
	var workers sync.WaitGroup
	defer workers.Wait()
	defer c.queue.ShutDown()
	var synced []cache.DoneChecker
	for _, add := range c.addHandlers {
		checker, err := add()
		if err != nil {
			utilruntime.HandleErrorWithContext(ctx, err, "Adding event handlers failed") // the informers have ended
			return
		}
		synced = append(synced, checker)
	}
	if !cache.WaitFor(ctx, "", synced...) {
		return
	}
	klog.FromContext(ctx).Info("Starting the workers", "count", count)
	for range count {
		workers.Go(func() {
			for ctx.Err() == nil && c.processNextWorkItem(ctx) {
			}
		})
	}
	<-ctx.Done()
}

// processNextWorkItem waits for a key and syncs it. It returns false when the queue is shut down.
func (c *Controller) processNextWorkItem(ctx context.Context) bool {
	key, shutdown := c.queue.Get()
	if shutdown {
		return false
	}
	defer c.queue.Done(key)
	if !c.fooWrites.Seen(key) || !c.children.Seen(key) {
		c.queue.AddAfter(key, staleRetryDelay)
		return true
	}
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "foo", key)
	syncCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), syncTimeout)
	defer cancel()
	err := c.syncHandler(klog.NewContext(syncCtx, logger), key)
	syncErrors.Count(err)
	switch {
	case err == nil:
		c.queue.Forget(key)
		return true
	case apierrors.IsConflict(err) && !patch.IsRefusal(err): // somebody else wrote in between
		logger.V(4).Info("Retrying after a conflict", "err", err)
	default:
		utilruntime.HandleErrorWithContext(ctx, err, "Syncing failed, will retry", "foo", key)
	}
	c.queue.AddRateLimited(key)
	return true
}
