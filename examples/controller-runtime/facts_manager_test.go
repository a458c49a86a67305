package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/sample-controller/internal/testing/fakes"
	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// newFooManager returns a Manager with a Controller of Foos that calls reconciled.
func (a *api) newFooManager(
	t *testing.T, reconciled func(), options ...builder.ForOption,
) ctrl.Manager {
	t.Helper()
	mgr := a.newManager(t, ctrl.Options{})
	b := ctrl.NewControllerManagedBy(mgr).Named(controllerName).For(&v1alpha1.Foo{}, options...)
	must.Do(t, b.Complete(
		reconcile.Func(func(context.Context, ctrl.Request) (ctrl.Result, error) {
			reconciled()
			return ctrl.Result{}, nil
		})))
	return mgr
}

// The informer mostly begins before the Controller adds its handler. Then its first tick is too early
// for that handler by a fraction of a second, and the handler is left out.
func TestAResyncComesEveryTenHoursAndTheFirstUpToTwentyLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls []time.Duration
		begin := time.Now()
		mgr := (&api{version: 1}).newFooManager(t, func() { calls = append(calls, time.Since(begin)) })
		go func() { _ = mgr.Start(t.Context()) }()
		time.Sleep(35 * time.Hour)
		synctest.Wait()
		if len(calls) < 3 {
			t.Fatalf("got calls after %v, want one at the start and two or three for resyncs", calls)
		}
		first, period := calls[1], calls[2]-calls[1]
		if period < 9*time.Hour || period > 11*time.Hour {
			t.Errorf("got a period of %v, want 9h to 11h", period)
		}
		if (first-period).Abs() > time.Second && (first-2*period).Abs() > time.Second {
			t.Errorf("got the first resync after %v, want %v or twice that", first, period)
		}
	})
}

func TestWhatPredicatesDropIsNotReconciled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, calls := &api{version: 1}, 0
		mgr := a.newFooManager(t, func() { calls++ }, builder.WithPredicates(
			predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{})))
		go func() { _ = mgr.Start(t.Context()) }()
		time.Sleep(time.Minute)
		foo := fooAt("web", 1)
		for _, test := range []struct {
			what   string
			change func()
			want   int // calls from the start on
		}{
			{"created", func() {}, 1},
			{"status", func() { foo.Status.Replicas = 1 }, 1},
			{"spec", func() { foo.Generation = 2 }, 2},
			{"label", func() { foo.Labels = map[string]string{"tier": "web"} }, 3},
			{"resyncs", func() { time.Sleep(35 * time.Hour) }, 3},
		} {
			test.change()
			foo.ResourceVersion += "0"
			event := metav1.WatchEvent{Type: "MODIFIED"}
			event.Object.Object = foo
			must.Do(t, json.NewEncoder(a.watch).Encode(event))
			time.Sleep(time.Minute)
			synctest.Wait()
			if calls != test.want {
				t.Errorf("%s: got %d calls, want %d", test.what, calls, test.want)
			}
		}
	})
}

func TestWithoutPermissionTheManagerEndsAfterTwoMinutes(t *testing.T) {
	fakes.CountErrors(t)
	synctest.Test(t, func(t *testing.T) {
		a := &api{}
		a.forbids.Store(true)
		mgr := a.newFooManager(t, func() {})
		begin := time.Now()
		err := mgr.Start(t.Context())
		if err == nil || !strings.Contains(err.Error(), "failed to wait for") {
			t.Errorf("got the error %v, want one about the caches", err)
		}
		if took := time.Since(begin); took != 2*time.Minute {
			t.Errorf("ended after %v, want 2m", took)
		}
	})
}

// An index makes the Cache know the kind before the start, so the Manager waits for it first. After
// the signal, it spins while it waits: such a test cannot run in a bubble.
func TestWithoutPermissionForAnIndexedKindTheManagerDoesNotEndOnASignal(t *testing.T) {
	a := &api{}
	a.forbids.Store(true)
	mgr := a.newFooManager(t, func() {})
	err := mgr.GetFieldIndexer().IndexField(t.Context(), &v1alpha1.Foo{}, deploymentNameIndex,
		func(client.Object) []string { return nil })
	must.Do(t, err)
	ctx, signal := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	eventually(t, "the Manager lists Foos", func() error {
		if a.requests.Load() == 0 {
			return errors.New("no request")
		}
		return nil
	})

	signal()
	before := a.requests.Load()
	a.forbids.Store(false)
	err = <-ended

	if err != nil || a.requests.Load() == before {
		t.Errorf("got the error %v and %d requests after the signal, want none and some",
			err, a.requests.Load()-before)
	}
}

func TestTheLeaseIsReleasedBeforeTheWorkHasStoppedIfARenewalFails(t *testing.T) {
	for name, test := range map[string]struct {
		end  func(signal func(), refuses *atomic.Bool)
		want bool
	}{
		"a signal":         {func(signal func(), _ *atomic.Bool) { signal() }, false},
		"a failed renewal": {func(_ func(), refuses *atomic.Bool) { refuses.Store(true) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				releases := 0
				var stopped, refuses atomic.Bool
				kube := fakes.New().Kube
				kube.PrependReactor("update", "leases", func(action clienttesting.Action) (
					bool, runtime.Object, error,
				) {
					lease := action.(clienttesting.UpdateAction).GetObject().(*coordinationv1.Lease)
					if *lease.Spec.HolderIdentity != "" {
						return refuses.Load(), nil, errInjected
					}
					releases++
					if got := !stopped.Load(); got != test.want {
						t.Errorf("at work when the Lease is released: got %v, want %v", got, test.want)
					}
					return false, nil, nil
				})
				mgr := (&api{}).newManager(t, ctrl.Options{
					LeaderElection: true, LeaderElectionReleaseOnCancel: true,
					LeaderElectionResourceLockInterface: &resourcelock.LeaseLock{
						LeaseMeta:  metav1.ObjectMeta{Namespace: "default", Name: controllerName},
						LockConfig: resourcelock.ResourceLockConfig{Identity: "this"},
						Client:     kube.CoordinationV1(),
					},
				})
				must.Do(t, mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
					<-ctx.Done()
					time.Sleep(time.Second) // for what has begun
					stopped.Store(true)
					return nil
				})))
				ctx, signal := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- mgr.Start(ctx) }()
				time.Sleep(time.Minute)
				test.end(signal, &refuses)
				err := <-ended
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
