package leader

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"example.com/sample-controller/internal/testing/fakes"
	"example.com/sample-controller/internal/testing/must"
)

// cluster has an API server, and what a test needs to run Electors there.
type cluster struct{ *fakes.Server }

func bubble(t *testing.T, test func(*testing.T, *cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, &cluster{fakes.New(t)}) })
}

// disturb calls do before each request about the Lease is answered.
func (c *cluster) disturb(do func(context.Context) error) {
	for _, verb := range []string{"get", "update"} {
		c.Before(verb, "leases", math.MaxInt, do)
	}
}

// hang answers nothing until the client gives up.
func hang(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// newElector returns an Elector with the durations of Kubernetes' components.
func (c *cluster) newElector(t *testing.T) *Elector {
	t.Helper()
	return must.Get(NewElector(Config{
		Client:    coordinationclient.NewForConfigOrDie(c.Config),
		Namespace: "default", Name: "test-controller",
		LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
	}))(t)
}

// expectReleased fails t unless run ends without an error, and nobody holds the Lease then.
func (c *cluster) expectReleased(t *testing.T, run chan error) {
	t.Helper()
	if err := <-run; err != nil {
		t.Errorf("Run: got %v, want no error", err)
	}
	if got := c.leaseHolder(t); got != "" {
		t.Errorf("holder afterwards: got %q, want none", got)
	}
}

func (c *cluster) leaseHolder(t *testing.T) string {
	t.Helper()
	leases := coordinationclient.NewForConfigOrDie(c.Others).Leases("default")
	lease := must.Get(leases.Get(context.Background(), "test-controller", metav1.GetOptions{}))(t)
	return *lease.Spec.HolderIdentity
}

func untilDone(ctx context.Context) { <-ctx.Done() }

// run runs a new Elector in the background.
func (c *cluster) run(ctx context.Context, t *testing.T, work func(context.Context)) chan error {
	t.Helper()
	ended, elector := make(chan error, 1), c.newElector(t)
	go func() { ended <- elector.Run(ctx, work) }()
	return ended
}

func TestLeaseIsHeldUntilTheWorkIsDone(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		ctx, cancel := context.WithCancel(t.Context())
		done := c.run(ctx, t, func(ctx context.Context) {
			<-ctx.Done()
			time.Sleep(30 * time.Second) // longer than the Lease lasts without renewal
			if c.leaseHolder(t) == "" {
				t.Error("the Lease was released before the work was done")
			}
		})
		synctest.Wait()
		cancel()
		c.expectReleased(t, done)
	})
}

// A renewal is under way when the leader is asked to stop. The API server has done it only after
// the leader has read the Lease to release it.
func TestStopDuringARenewalIsNormal(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		ctx, cancel := context.WithCancel(t.Context())
		done := c.run(ctx, t, untilDone)
		synctest.Wait()
		c.Before("update", "leases", 1, hang)
		time.Sleep(3 * time.Second) // a renewal has begun
		c.Fail("update", "leases", 1, apierrors.NewConflict(
			coordinationv1.Resource("leases"), "test-controller", nil))
		cancel()
		c.expectReleased(t, done)
	})
}

func TestStandbyWaitsAndStops(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		var working atomic.Int32
		work := func(ctx context.Context) {
			working.Add(1)
			<-ctx.Done()
			working.Add(-1)
		}
		leaderCtx, stopLeader := context.WithCancel(t.Context())
		leader := c.run(leaderCtx, t, work)
		synctest.Wait()
		standbyCtx, stopStandby := context.WithCancel(t.Context())
		standby := c.run(standbyCtx, t, work)
		time.Sleep(time.Minute)
		if got := working.Load(); got != 1 {
			t.Errorf("processes at work: got %d of 2, want 1", got)
		}

		stopStandby()
		time.Sleep(time.Hour)
		if len(standby) == 0 || len(leader) > 0 || working.Load() != 1 {
			t.Fatal("want the standby stopped, and the leader at work")
		}
		must.Do(t, <-standby)
		stopLeader()
		c.expectReleased(t, leader)
	})
}

// The API server has done the first write of this standby, but the answer was lost.
func TestStandbyThatCannotWriteStops(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		ctx, cancel := context.WithCancel(t.Context())
		elector, ended := c.newElector(t), make(chan error, 1)
		lease := &coordinationv1.Lease{ObjectMeta: elector.lock.LeaseMeta}
		lease.Spec.HolderIdentity = new(elector.lock.Identity())
		must.Get(elector.lock.Client.Leases("default").Create(ctx, lease, metav1.CreateOptions{}))(t)
		c.Fail("update", "leases", 100, apierrors.NewInternalError(errors.New("injected")))
		go func() { ended <- elector.Run(ctx, untilDone) }()
		time.Sleep(time.Minute)
		cancel()
		time.Sleep(time.Minute)
		if len(ended) == 0 {
			t.Error("the standby did not stop")
		}
	})
}

func TestLostLeaseIsAnError(t *testing.T) {
	slow := func(ctx context.Context) {
		<-ctx.Done()
		time.Sleep(time.Minute)
	}
	for name, test := range map[string]struct {
		work func(context.Context)
		stop bool
	}{
		"nobody has asked":                {untilDone, false},
		"the work has ended by itself":    {func(context.Context) {}, false},
		"the work takes long to be ended": {slow, true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *cluster) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				lost := c.run(ctx, t, test.work)
				synctest.Wait()
				c.Fail("update", "leases", math.MaxInt, apierrors.NewInternalError(errors.New("injected")))
				if test.stop {
					cancel()
				}
				if err := <-lost; err == nil {
					t.Error("Run: got no error, want one")
				}
				time.Sleep(time.Hour) // the work ends, too
			})
		})
	}
}

func TestLeaderOfAHangingServerEndsBeforeItsLease(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		lost := c.run(t.Context(), t, untilDone)
		time.Sleep(time.Minute)
		c.disturb(hang)
		begin := time.Now()
		if err := <-lost; err == nil {
			t.Error("Run: got no error, want one")
		}
		if got := time.Since(begin); got >= 15*time.Second {
			t.Errorf("Run returned after %v, want it before the 15s of the Lease are over", got)
		}
	})
}

func TestCheckFailsForALeaderThatIsFrozenLongAfterItsLease(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		elector := c.newElector(t)
		ended := make(chan error)
		go func() { ended <- elector.Run(t.Context(), untilDone) }()
		time.Sleep(time.Minute)
		if err := elector.Check(nil); err != nil {
			t.Errorf("Check of a leader: got %v, want no error", err)
		}
		thaw := make(chan struct{})
		c.disturb(func(ctx context.Context) error {
			<-thaw
			return ctx.Err()
		})
		time.Sleep(30 * time.Second)
		if err := elector.Check(nil); err != nil {
			t.Errorf("Check 15s after the end of the Lease: got %v, want no error", err)
		}
		time.Sleep(10 * time.Second)
		if err := elector.Check(nil); err == nil {
			t.Error("Check 25s after the end of the Lease: got no error, want one")
		}
		close(thaw)
		if err := <-ended; err == nil {
			t.Error("Run: got no error, want one")
		}
	})
}
