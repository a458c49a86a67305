package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
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
	// The election is not bound to ctx, because its end releases the Lease, and the Lease must be
	// held until the work that ctx stops is finished.
	electionCtx, release := context.WithCancel(context.WithoutCancel(ctx))
	defer release()
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name:            controllerName,
		Lock:            lock,
		LeaseDuration:   o.leaseDuration,
		RenewDeadline:   o.renewDeadline,
		RetryPeriod:     o.retryPeriod,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leadingCtx context.Context) {
				defer release()
				workCtx, stop := context.WithCancel(ctx)
				defer stop()
				context.AfterFunc(leadingCtx, stop)
				work(workCtx)
			},
			OnStoppedLeading: func() {}, // required; Run returns after it
		},
	})
	if err != nil {
		return fmt.Errorf("preparing leader election: %w", err)
	}
	health.SetLeaderElection(elector)
	// A standby has no work that would notice ctx.
	context.AfterFunc(ctx, func() {
		if !elector.IsLeader() {
			release()
		}
	})
	elector.Run(electionCtx)
	if ctx.Err() == nil {
		return errors.New("the Lease was lost to another replica or could not be renewed in time")
	}
	return nil
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
