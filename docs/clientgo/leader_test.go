package clientgo_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// elect contends for the Lease under the identity name until ctx is done, and runs work when it has
// the Lease. The durations are those of this controller.
func elect(ctx context.Context, client coordinationclient.LeasesGetter, name string,
	work func(context.Context)) {
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: "default", Name: "sample-controller"},
			Client:     client,
			LockConfig: resourcelock.ResourceLockConfig{Identity: name},
		},
		LeaseDuration: 15 * time.Second,
		RenewDeadline: 10 * time.Second,
		RetryPeriod:   2 * time.Second,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: work, OnStoppedLeading: func() {},
		},
	})
}

// A standby takes over when it has seen no renewal for the duration of the Lease, by its own clock.
// It ignores the time that the leader wrote into the Lease, which is an hour ago here.
func TestStandbyWaitsOutTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(&coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "sample-controller"},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity:       new("vanished"),
				LeaseDurationSeconds: new(int32(15)),
				RenewTime:            new(metav1.NewMicroTime(time.Now().Add(-time.Hour))),
			},
		})
		begin := time.Now()
		ctx, stop := context.WithCancel(t.Context())
		elect(ctx, client.CoordinationV1(), "standby", func(context.Context) { stop() })
		if waited := time.Since(begin); waited < 15*time.Second || waited > 20*time.Second {
			t.Errorf("the standby took over after %v, want 15s and then up to 4.4s until its next try",
				waited)
		}
	})
}

// The election does not wait for the work. When it returns, it has only told the work to stop.
func TestElectionDoesNotWaitForTheWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		stopped := make(chan struct{})
		time.AfterFunc(time.Minute, stop)
		elect(ctx, fake.NewClientset().CoordinationV1(), "first", func(ctx context.Context) {
			<-ctx.Done()
			time.Sleep(time.Second) // virtual: the work finishes what it has begun
			close(stopped)
		})
		select {
		case <-stopped:
			t.Error("the work had stopped when the election returned, want it to go on")
		default:
		}
		<-stopped
	})
}
