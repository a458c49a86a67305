package leader

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubefake "k8s.io/client-go/kubernetes/fake"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	clienttesting "k8s.io/client-go/testing"

	"example.com/sample-controller/internal/testing/must"
)

// cluster has an API server that can disturb requests about Leases: it refuses updates, it hangs
// until the client gives up, or it freezes until thaw is closed.
type cluster struct {
	kube                    *kubefake.Clientset
	refuses, hangs, freezes atomic.Bool
	thaw                    chan struct{}
}

func bubble(t *testing.T, test func(*testing.T, *cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{kube: kubefake.NewClientset(), thaw: make(chan struct{})}
		c.kube.PrependReactor("update", "leases", func(clienttesting.Action) (
			bool, runtime.Object, error,
		) {
			return c.refuses.Load(), nil, errors.New("injected")
		})
		test(t, c)
	})
}

// newElector returns an Elector with the durations of Kubernetes' components.
func (c *cluster) newElector(t *testing.T) *Elector {
	t.Helper()
	return must.Get(NewElector(Config{
		Client:    leases{c.kube.CoordinationV1().Leases("default"), c},
		Namespace: "default", Name: "test-controller",
		LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
	}))(t)
}

func (c *cluster) leaseHolder(t *testing.T) string {
	t.Helper()
	lease := must.Get(c.kube.CoordinationV1().Leases("default").Get(
		context.Background(), "test-controller", metav1.GetOptions{}))(t)
	return *lease.Spec.HolderIdentity
}

// leases is a client of Leases whose requests wait while the cluster hangs or freezes.
type leases struct {
	coordinationclient.LeaseInterface
	cluster *cluster
}

func (l leases) Leases(string) coordinationclient.LeaseInterface { return l }

func (l leases) Get(
	ctx context.Context, name string, options metav1.GetOptions,
) (*coordinationv1.Lease, error) {
	l.cluster.wait(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return l.LeaseInterface.Get(ctx, name, options)
}

func (l leases) Update(
	ctx context.Context, lease *coordinationv1.Lease, options metav1.UpdateOptions,
) (*coordinationv1.Lease, error) {
	l.cluster.wait(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return l.LeaseInterface.Update(ctx, lease, options)
}

// wait waits as long as the cluster gives no answer to a request with ctx.
func (c *cluster) wait(ctx context.Context) {
	if c.hangs.Load() {
		<-ctx.Done()
	}
	if c.freezes.Load() {
		<-c.thaw
	}
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
		if err := <-done; err != nil {
			t.Errorf("Run: got %v, want no error", err)
		}
		if got := c.leaseHolder(t); got != "" {
			t.Errorf("holder afterwards: got %q, want none", got)
		}
	})
}

// A renewal is under way when the leader is asked to stop. The API server has done it only after
// the leader has read the Lease to release it.
func TestStopDuringARenewalIsNormal(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		var conflicted atomic.Bool
		c.kube.PrependReactor("update", "leases", func(action clienttesting.Action) (
			bool, runtime.Object, error,
		) {
			lease := action.(clienttesting.UpdateAction).GetObject().(*coordinationv1.Lease)
			if *lease.Spec.HolderIdentity != "" || conflicted.Swap(true) {
				return false, nil, nil
			}
			return true, nil, apierrors.NewConflict(coordinationv1.Resource("leases"), lease.Name, nil)
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := c.run(ctx, t, untilDone)
		synctest.Wait()
		c.hangs.Store(true)
		time.Sleep(3 * time.Second) // a renewal has begun
		c.hangs.Store(false)
		log := logged(t, func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("Run: got %v, want no error", err)
			}
		})
		if got := c.leaseHolder(t); got != "" || !conflicted.Load() {
			t.Errorf("holder afterwards: got %q (after a conflict: %v), want none", got, conflicted.Load())
		}
		if log != "" {
			t.Errorf("got the log %q, want none", log)
		}
	})
}

func TestStandbyWaitsAndStops(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		leaderCtx, stopLeader := context.WithCancel(t.Context())
		standbyCtx, stopStandby := context.WithCancel(t.Context())
		var working atomic.Int32
		work := func(ctx context.Context) {
			working.Add(1)
			<-ctx.Done()
			working.Add(-1)
		}
		stopped := make(chan error, 2)
		for _, ctx := range []context.Context{leaderCtx, standbyCtx} {
			go func() { stopped <- c.newElector(t).Run(ctx, work) }()
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		if got := working.Load(); got != 1 {
			t.Errorf("processes at work: got %d of 2, want 1", got)
		}
		stopStandby()
		select {
		case err := <-stopped:
			if err != nil {
				t.Errorf("standby: got %v, want no error", err)
			}
		case <-time.After(time.Hour): // virtual
			t.Error("the standby did not stop when it was asked to")
			stopLeader()
			if err := <-stopped; err != nil {
				t.Errorf("leader: got %v, want no error", err)
			}
		}
		if got := working.Load(); got != 1 {
			t.Errorf("processes at work after the standby stopped: got %d, want 1", got)
		}
		stopLeader()
		if err := <-stopped; err != nil {
			t.Errorf("leader: got %v, want no error", err)
		}
	})
}

func TestLostLeaseIsAnError(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		lost := c.run(t.Context(), t, untilDone)
		synctest.Wait()
		c.refuses.Store(true)
		if err := <-lost; err == nil {
			t.Error("Run: got no error, want one")
		}
	})
}

func TestLeaderOfAHangingServerEndsBeforeItsLease(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		lost := c.run(t.Context(), t, untilDone)
		time.Sleep(time.Minute)
		c.hangs.Store(true)
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
		c.freezes.Store(true)
		time.Sleep(30 * time.Second)
		if err := elector.Check(nil); err != nil {
			t.Errorf("Check 15s after the end of the Lease: got %v, want no error", err)
		}
		time.Sleep(10 * time.Second)
		if err := elector.Check(nil); err == nil {
			t.Error("Check 25s after the end of the Lease: got no error, want one")
		}
		close(c.thaw)
		if err := <-ended; err == nil {
			t.Error("Run: got no error, want one")
		}
	})
}
