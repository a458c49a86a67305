package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// leaderHealthTolerance is how long past its Lease's end a leader may go on before /healthz fails.
const leaderHealthTolerance = 20 * time.Second

// lead runs work while this process holds the Lease, and returns when ctx is done and work has
// returned. Losing the Lease is an error, for which the process must end at once: another leader
// may be at work.
func lead(
	ctx context.Context, c *clients, o leaderElectionOptions,
	health *leaderelection.HealthzAdaptor, work func(context.Context),
) error {
	lock, err := newLeaseLock(c)
	if err != nil {
		return err
	}
	// The Lease must be held until the work that ctx stops is finished, so the election goes on.
	electionCtx, stopElection := context.WithCancel(context.WithoutCancel(ctx))
	defer stopElection()
	var working atomic.Bool
	elector, err := leaderelection.NewLeaderElector(o.config(lock, leaderelection.LeaderCallbacks{
		OnStartedLeading: func(leadingCtx context.Context) {
			defer stopElection()
			workCtx, stopWork := context.WithCancel(ctx)
			defer stopWork()
			context.AfterFunc(leadingCtx, stopWork)
			working.Store(true)
			work(workCtx)
			working.Store(false)
		},
		OnStoppedLeading: func() {}, // required; Run returns after it
	}))
	if err != nil {
		return fmt.Errorf("preparing leader election: %w", err)
	}
	health.SetLeaderElection(elector)
	context.AfterFunc(ctx, func() {
		if !elector.IsLeader() { // a standby has no work that would notice ctx
			stopElection()
		}
	})
	elector.Run(electionCtx)
	if working.Load() || ctx.Err() == nil {
		return errors.New("the Lease was lost to another replica or could not be renewed in time")
	}
	releaseLease(context.WithoutCancel(ctx), lock, o.renewDeadline)
	return nil
}

// config returns the configuration of a leader election with these durations.
func (o leaderElectionOptions) config(
	lock resourcelock.Interface, callbacks leaderelection.LeaderCallbacks,
) leaderelection.LeaderElectionConfig {
	return leaderelection.LeaderElectionConfig{
		Name:          controllerName,
		Lock:          lock,
		LeaseDuration: o.leaseDuration,
		RenewDeadline: o.renewDeadline,
		RetryPeriod:   o.retryPeriod,
		// Not ReleaseOnCancel, but releaseLease: the former would release after a failed renewal,
		// too, before it stops the work. With an API server that hangs, that outlasts the Lease.
		Callbacks: callbacks,
	}
}

// releaseLease gives the Lease up if this process holds it, so that a standby need not wait until
// it is over. That it fails is no error: the Lease ends by itself.
func releaseLease(ctx context.Context, lock *resourcelock.LeaseLock, timeout time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	record, _, err := lock.Get(ctx)
	if apierrors.IsNotFound(err) || err == nil && record.HolderIdentity != lock.Identity() {
		return
	}
	if err == nil {
		record.HolderIdentity = ""
		record.LeaseDurationSeconds = 1
		err = lock.Update(ctx, *record)
	}
	if err != nil {
		klog.FromContext(ctx).Error(err, "Releasing the Lease failed, it ends by itself")
	}
}

// newLeaseLock returns the Lease as this process contends for it. The host's name is for the people
// who read it; the UUID makes two processes on one host differ.
func newLeaseLock(c *clients) (*resourcelock.LeaseLock, error) {
	hostname, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("naming this process in the Lease: %w", err)
	}
	identity := hostname + "_" + string(uuid.NewUUID())
	return &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: c.namespace, Name: controllerName},
		Client:     c.leases,
		LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
	}, nil
}
