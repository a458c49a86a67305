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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"example.com/sample-controller/explore/apiserver"
	"example.com/sample-controller/internal/testing/must"
)

// cluster has an API server that can disturb requests about Leases: it refuses updates, it hangs
// until the client gives up, or it freezes until thaw is closed.
type cluster struct {
	leases                  coordinationclient.LeasesGetter // those of the test, which nothing disturbs
	server                  *apiserver.Server
	refuses, hangs, freezes atomic.Bool
	thaw                    chan struct{}
	conflicts               atomic.Int32 // releases of the Lease that get a conflict
}

func bubble(t *testing.T, test func(*testing.T, *cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := must.Get(apiserver.New())(t)
		test(t, &cluster{server: server, thaw: make(chan struct{}),
			leases: coordinationclient.NewForConfigOrDie(server.Config(nil))})
	})
}

// Serve lets the API server answer a request, when nothing disturbs that.
func (c *cluster) Serve(
	ctx context.Context, r *apiserver.Request, do func() (*apiserver.Response, error),
) (*apiserver.Response, error) {
	if c.hangs.Load() {
		<-ctx.Done()
	}
	if c.freezes.Load() {
		<-c.thaw
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case r.Verb != "update":
	case c.refuses.Load():
		return nil, apierrors.NewInternalError(errors.New("injected"))
	case c.conflicts.Load() > 0 && holder(r.Body) == "":
		c.conflicts.Add(-1)
		return nil, apierrors.NewConflict(coordinationv1.Resource("leases"), r.Name, nil)
	}
	return do()
}

// Event is for watches, of which there are none.
func (*cluster) Event(*apiserver.Watch, watch.Event) {}

func holder(lease *unstructured.Unstructured) string {
	name, _, _ := unstructured.NestedString(lease.Object, "spec", "holderIdentity")
	return name
}

// newElector returns an Elector with the durations of Kubernetes' components.
func (c *cluster) newElector(t *testing.T) *Elector {
	t.Helper()
	return must.Get(NewElector(Config{
		Client:    coordinationclient.NewForConfigOrDie(c.server.Config(c)),
		Namespace: "default", Name: "test-controller",
		LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
	}))(t)
}

func (c *cluster) leaseHolder(t *testing.T) string {
	t.Helper()
	lease := must.Get(c.leases.Leases("default").Get(
		context.Background(), "test-controller", metav1.GetOptions{}))(t)
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
		c.conflicts.Store(1)
		ctx, cancel := context.WithCancel(t.Context())
		done := c.run(ctx, t, untilDone)
		synctest.Wait()
		c.hangs.Store(true)
		time.Sleep(3 * time.Second) // a renewal has begun
		c.hangs.Store(false)
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: got %v, want no error", err)
		}
		if got, left := c.leaseHolder(t), c.conflicts.Load(); got != "" || left > 0 {
			t.Errorf("holder afterwards: got %q (%d conflicts left), want none", got, left)
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
				c.refuses.Store(true)
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
