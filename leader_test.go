package main

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
)

// leaderClients returns clients for lead, and the options with their defaults.
func leaderClients(t *testing.T, h *harness) (*clients, leaderElectionOptions) {
	t.Helper()
	o, err := parseFlags([]string{"--leader-elect"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return &clients{leases: h.kube.CoordinationV1(), namespace: namespace}, o.leaderElection
}

func (h *harness) leaseHolder() string {
	h.t.Helper()
	lease, err := h.kube.CoordinationV1().Leases(namespace).Get(
		context.Background(), "sample-controller", metav1.GetOptions{})
	if err != nil {
		h.t.Fatal(err)
	}
	return *lease.Spec.HolderIdentity
}

func TestLeaseIsHeldUntilTheWorkIsDone(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		clients, o := leaderClients(t, h)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			health := leaderelection.NewLeaderHealthzAdaptor(0)
			done <- lead(ctx, clients, o, health, func(ctx context.Context) {
				<-ctx.Done()
				time.Sleep(30 * time.Second) // longer than the Lease lasts without renewal
				if h.leaseHolder() == "" {
					t.Error("the Lease was released before the work was done")
				}
			})
		}()
		synctest.Wait()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("got %v, want no error", err)
		}
		if got := h.leaseHolder(); got != "" {
			t.Errorf("holder afterwards: got %q, want none", got)
		}
	})
}

func TestStandbyWaitsAndStops(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		clients, o := leaderClients(t, h)
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
			go func() {
				stopped <- lead(ctx, clients, o, leaderelection.NewLeaderHealthzAdaptor(0), work)
			}()
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		if got := working.Load(); got != 1 {
			t.Errorf("at work: got %d of 2, want 1", got)
		}
		stopStandby()
		select {
		case err := <-stopped:
			if err != nil {
				t.Errorf("standby: got %v, want no error", err)
			}
		case <-time.After(time.Hour): // virtual
			t.Error("the standby goes on after it was asked to stop")
			stopLeader()
			if err := <-stopped; err != nil {
				t.Errorf("leader: got %v, want no error", err)
			}
		}
		if got := working.Load(); got != 1 {
			t.Errorf("at work without the standby: got %d, want 1", got)
		}
		stopLeader()
		if err := <-stopped; err != nil {
			t.Errorf("leader: got %v, want no error", err)
		}
	})
}

func TestLostLeaseIsAnError(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		clients, o := leaderClients(t, h)
		lost := make(chan error)
		go func() {
			lost <- lead(t.Context(), clients, o, leaderelection.NewLeaderHealthzAdaptor(0),
				func(ctx context.Context) { <-ctx.Done() })
		}()
		synctest.Wait()
		h.answer("update", "leases", 1000, apierrors.NewInternalError(errors.New("injected")))
		if err := <-lost; err == nil {
			t.Error("got no error, want one")
		}
	})
}

// hangingLeases does not answer any more once hangs is true.
type hangingLeases struct {
	coordinationclient.LeaseInterface
	hangs *atomic.Bool
}

func (l hangingLeases) Leases(string) coordinationclient.LeaseInterface { return l }

func (l hangingLeases) Get(
	ctx context.Context, name string, options metav1.GetOptions,
) (*coordinationv1.Lease, error) {
	if l.hangs.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return l.LeaseInterface.Get(ctx, name, options)
}

func (l hangingLeases) Update(
	ctx context.Context, lease *coordinationv1.Lease, options metav1.UpdateOptions,
) (*coordinationv1.Lease, error) {
	if l.hangs.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return l.LeaseInterface.Update(ctx, lease, options)
}

func TestLeaderOfAHangingServerEndsBeforeItsLease(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		clients, o := leaderClients(t, h)
		var hangs atomic.Bool
		clients.leases = hangingLeases{h.kube.CoordinationV1().Leases(namespace), &hangs}
		lost := make(chan error)
		go func() {
			lost <- lead(t.Context(), clients, o, leaderelection.NewLeaderHealthzAdaptor(0),
				func(ctx context.Context) { <-ctx.Done() })
		}()
		time.Sleep(time.Minute)
		hangs.Store(true)
		begin := time.Now()
		if err := <-lost; err == nil {
			t.Error("got no error, want one")
		}
		if got := time.Since(begin); got >= 15*time.Second {
			t.Errorf("ended after %v, when the Lease of 15s was over", got)
		}
	})
}
