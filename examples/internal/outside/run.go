package outside

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"example.com/sample-controller/internal/metrics"
	"example.com/sample-controller/internal/probes"
)

// Run works until ctx is done, or until it cannot go on, which is an error. What started last stops
// first: see the run of the root.
func (p *Process) Run(ctx context.Context) error {
	workCtx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	err := errors.Join(probes.Serve(background, p.options.HealthAddress, p.elector.Check, p.ready),
		metrics.Serve(background, p.Clients.Metrics))
	if err != nil {
		return err
	}
	err = wait.PollUntilContextCancel(workCtx, time.Second, true, func(ctx context.Context,
	) (bool, error) {
		err := p.controller.Connect(ctx)
		if err != nil {
			klog.FromContext(ctx).Info("Waiting for the store of the Foos", "err", err)
		}
		return err == nil, nil
	})
	if err != nil {
		return nil // it was told to stop
	}
	needed := appsv1.SchemeGroupVersion.WithResource("deployments")
	if err := p.Clients.Preflight(workCtx, needed, "", p.options.LeaderElect); err != nil {
		return err
	}
	if err := p.group.Start(workCtx, background, fail); err != nil {
		return err
	}
	if !p.options.LeaderElect {
		p.work(workCtx)
	} else if err := p.elector.Run(workCtx, p.work); err != nil {
		return err
	}
	if ctx.Err() == nil {
		return context.Cause(workCtx)
	}
	return nil
}

func (p *Process) ready(r *http.Request) error {
	return errors.Join(p.controller.Check(r), p.group.Check(r))
}

// work syncs the keys of the queue until ctx is done, and then finishes the syncs that have begun.
func (p *Process) work(ctx context.Context) {
	var workers sync.WaitGroup
	defer p.Recorder.Flush(flushTimeout)
	defer workers.Wait()
	defer p.Queue.ShutDown()
	if !cache.WaitFor(ctx, "", p.synced...) {
		return
	}
	klog.FromContext(ctx).Info("Starting the workers", "count", p.options.Workers)
	for range p.options.Workers {
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
