package main

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// lock is a Lease that lasts, and that tells of its release.
type lock struct {
	mu       sync.Mutex
	record   *resourcelock.LeaderElectionRecord
	refuses  bool // to be renewed
	released func()
}

func (l *lock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.record == nil {
		return nil, nil, apierrors.NewNotFound(v1alpha1.Resource("leases"), controllerName)
	}
	record := *l.record
	return &record, []byte(record.HolderIdentity), nil
}

func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.Update(ctx, record)
}

func (l *lock) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	released := record.HolderIdentity == ""
	if l.refuses && !released {
		return errInjected
	}
	if released {
		l.released()
	}
	l.record = &record
	return nil
}

func (*lock) RecordEvent(string) {}
func (*lock) Identity() string   { return "this" }
func (*lock) Describe() string   { return "lock" }

func (l *lock) refuse() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refuses = true
}

func TestTheLeaseIsReleasedBeforeTheWorkHasStoppedIfARenewalFails(t *testing.T) {
	for name, test := range map[string]struct {
		end  func(signal func(), l *lock)
		want bool
	}{
		"a signal":         {func(signal func(), _ *lock) { signal() }, false},
		"a failed renewal": {func(_ func(), l *lock) { l.refuse() }, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				releases := 0
				var stopped atomic.Bool
				l := &lock{}
				l.released = func() {
					releases++
					if got := !stopped.Load(); got != test.want {
						t.Errorf("at work when the Lease is released: got %v, want %v", got, test.want)
					}
				}
				mgr := (&api{}).newManager(t, ctrl.Options{
					LeaderElection: true, LeaderElectionReleaseOnCancel: true,
					LeaderElectionResourceLockInterface: l,
				})
				err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
					<-ctx.Done()
					time.Sleep(time.Second) // for what has begun
					stopped.Store(true)
					return nil
				}))
				if err != nil {
					t.Fatal(err)
				}
				ctx, signal := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- mgr.Start(ctx) }()
				time.Sleep(time.Minute)
				test.end(signal, l)
				err = <-ended
				if got := !stopped.Load(); got != test.want {
					t.Errorf("at work when the Manager has ended: got %v, want %v", got, test.want)
				}
				if (err != nil) != test.want || releases != 1 {
					t.Errorf("got the error %v and %d releases, want %v and 1", err, releases, test.want)
				}
				signal()
				time.Sleep(time.Minute) // until the work has stopped, too
			})
		})
	}
}
