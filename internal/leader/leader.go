// Package leader lets one of several processes work: the one that holds a Lease. It is built on
// client-go's leader election, and differs from it at the end. A leader that is asked to stop holds
// the Lease until its work is done. Then it releases the Lease, so that the next leader need not
// wait. A leader that loses the Lease ends without releasing it.
package leader

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"
)

// healthTolerance is how long a leader may go on after the end of its Lease before Check fails.
const healthTolerance = 20 * time.Second

// Config names the Lease, and says how long the processes wait. The durations have no defaults;
// Kubernetes' own components use 15s, 10s and 2s.
type Config struct {
	// Client should have a rate limit of its own, or none: a busy leader must not lose the Lease.
	Client          coordinationclient.LeasesGetter
	Namespace, Name string // of the Lease

	LeaseDuration time.Duration // how long a standby waits for a silent leader
	RenewDeadline time.Duration // how long a leader tries to renew before it gives up
	RetryPeriod   time.Duration // how long a process waits between two tries
}

// Elector contends for a Lease.
type Elector struct {
	config Config
	lock   *resourcelock.LeaseLock
	health *leaderelection.HealthzAdaptor
}

// NewElector returns an Elector. It makes no request.
func NewElector(config Config) (*Elector, error) {
	hostname, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("naming this process in the Lease: %w", err)
	}
	// The host name is for people who read the Lease. The UUID is different for two processes on
	// one host.
	identity := hostname + "_" + string(uuid.NewUUID())
	return &Elector{
		config: config,
		lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: config.Namespace, Name: config.Name},
			Client:     config.Client,
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		},
		health: leaderelection.NewLeaderHealthzAdaptor(healthTolerance),
	}, nil
}

// Check is a health check. It fails if this process still works long after the end of its Lease, so
// that a kubelet restarts it.
func (e *Elector) Check(request *http.Request) error { return e.health.Check(request) }

// Run waits for the Lease, runs work while this process holds it, and returns nil when ctx is done
// and work has returned. If it loses the Lease, it returns an error, and the process must end at
// once: another leader may be at work. Run may be called only once.
func (e *Elector) Run(ctx context.Context, work func(context.Context)) error {
	// When ctx stops the work, the election goes on: it holds the Lease until the work is finished.
	electionCtx, stopElection := context.WithCancel(context.WithoutCancel(ctx))
	defer stopElection()
	var decided, working atomic.Bool // decided: the work begins now, or never
	elector, err := leaderelection.NewLeaderElector(e.electionConfig(leaderelection.LeaderCallbacks{
		OnStartedLeading: func(leadingCtx context.Context) {
			defer stopElection()
			workCtx, stopWork := context.WithCancel(ctx)
			defer stopWork()
			context.AfterFunc(leadingCtx, stopWork)
			if decided.CompareAndSwap(false, true) {
				working.Store(true)
				work(workCtx)
				working.Store(false)
			}
		},
		OnStoppedLeading: func() {}, // required; elector.Run returns after it
	}))
	if err != nil {
		return fmt.Errorf("preparing leader election: %w", err)
	}
	e.health.SetLeaderElection(elector)
	context.AfterFunc(ctx, func() {
		if decided.CompareAndSwap(false, true) { // a standby has no work that would notice ctx
			stopElection()
		}
	})
	// elector.Run logs two errors that are normal: another process was faster, or the election was
	// stopped during a request.
	elector.Run(electionCtx)
	if working.Load() || ctx.Err() == nil {
		return errors.New("the Lease was lost to another replica or could not be renewed in time")
	}
	e.release(context.WithoutCancel(ctx))
	return nil
}

func (e *Elector) electionConfig(
	callbacks leaderelection.LeaderCallbacks,
) leaderelection.LeaderElectionConfig {
	return leaderelection.LeaderElectionConfig{
		Name:          e.config.Name,
		Lock:          e.lock,
		LeaseDuration: e.config.LeaseDuration,
		RenewDeadline: e.config.RenewDeadline,
		RetryPeriod:   e.config.RetryPeriod,
		// Not ReleaseOnCancel: after a failed renewal, it would release the Lease before it stops
		// the work. If the API server hangs, that takes longer than the Lease lasts. See release.
		Callbacks: callbacks,
	}
}

// release gives up the Lease if this process holds it, so that a standby need not wait for its end.
// It tries again after a conflict: the API server may still be busy with a renewal. A failure is
// only logged, because the Lease ends by itself.
func (e *Elector) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, e.config.RenewDeadline)
	defer cancel()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		record, _, err := e.lock.Get(ctx)
		if err != nil || record.HolderIdentity != e.lock.Identity() {
			return err
		}
		record.HolderIdentity = ""
		record.LeaseDurationSeconds = 1
		return e.lock.Update(ctx, *record)
	})
	if err != nil && !apierrors.IsNotFound(err) {
		klog.FromContext(ctx).Error(err, "Releasing the Lease failed, it ends by itself")
	}
}
