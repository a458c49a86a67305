package main

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"example.com/sample-controller/examples/internal/meaning"
	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

func TestAnEventTakesThePlaceOfALaterLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls []time.Duration
		begin := time.Now()
		q := startController(t.Context(), t, klog.Logger{},
			func(context.Context, ctrl.Request) (result ctrl.Result, err error) {
				calls = append(calls, time.Since(begin))
				if len(calls) == 1 {
					result.RequeueAfter = time.Minute
				}
				return result, nil
			})
		q.Add(request)
		time.Sleep(30 * time.Second)
		q.Add(request) // as an event does
		time.Sleep(time.Minute)
		synctest.Wait()
		if want := []time.Duration{0, 30 * time.Second}; !slices.Equal(calls, want) {
			t.Errorf("got calls after %v, want %v", calls, want)
		}
	})
}

func TestByDefaultOneReconcileRunsAtATimeAndWhatIsNewComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []string
		proceed := make(chan struct{})
		q := startController(t.Context(), t, klog.Logger{},
			func(_ context.Context, request ctrl.Request) (ctrl.Result, error) {
				order = append(order, request.Name)
				<-proceed
				return ctrl.Result{}, nil
			})
		for _, create := range []struct {
			name   string
			listed bool // when the Cache was filled
		}{{"first", false}, {"listed", true}, {"new", false}} {
			foo := &v1alpha1.Foo{ObjectMeta: metav1.ObjectMeta{Name: create.name}}
			(&handler.EnqueueRequestForObject{}).Create(t.Context(),
				event.CreateEvent{Object: foo, IsInInitialList: create.listed}, q)
			synctest.Wait()
		}
		if want := []string{"first"}; !slices.Equal(order, want) {
			t.Errorf("got %v under way, want %v", order, want)
		}
		close(proceed)
		synctest.Wait()
		if want := []string{"first", "new", "listed"}; !slices.Equal(order, want) {
			t.Errorf("got %v in the end, want %v", order, want)
		}
	})
}

func TestTheContextOfReconcileIsCanceledWhenAStopBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		var canceled bool
		q := startController(ctx, t, klog.Logger{},
			func(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
				<-ctx.Done()
				canceled = true
				return ctrl.Result{}, nil
			})
		q.Add(request)
		synctest.Wait()
		if canceled {
			t.Fatal("canceled before the stop")
		}
		stop()
		synctest.Wait()
		if !canceled {
			t.Error("not canceled: then context.WithoutCancel can go")
		}
	})
}

func TestAnEventThatIsRecordedAtTheEndCanBeLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &api{}
		mgr := a.newManager(t, ctrl.Options{})
		recorder := mgr.GetEventRecorder(controllerName)
		must.Do(t, mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
			recorder.Eventf(fooAt("web", 1), nil, corev1.EventTypeNormal, "Begun", "Work", "")
			<-ctx.Done()
			recorder.Eventf(fooAt("web", 1), nil, corev1.EventTypeNormal, "Finished", "Work", "")
			return nil
		})))
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, stop)
		if err := mgr.Start(ctx); err != nil || a.events.Load() != 1 {
			t.Errorf("got the error %v and %d Events at the end, want none and 1 of 2", err, a.events.Load())
		}
		time.Sleep(time.Minute) // for the other one: this test does not end, as a program does
	})
}

func TestTheCacheOfAKindStartsWithItsFirstUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &api{version: 1}
		c := a.startManager(t, ctrl.Options{}).GetClient()
		if got := a.requests.Load(); got != 0 {
			t.Errorf("got %d requests before the first use, want none", got)
		}
		err := c.Get(t.Context(), request.NamespacedName, &v1alpha1.Foo{})
		if err != nil || a.requests.Load() == 0 {
			t.Errorf("got the error %v and %d requests, want none and some", err, a.requests.Load())
		}
	})
}

func TestAReadAfterAWriteShowsTheOldState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &api{version: 1}
		c := a.startManager(t, ctrl.Options{}).GetClient()
		key, foo := request.NamespacedName, &v1alpha1.Foo{}
		err := errors.Join(c.Get(t.Context(), key, foo), c.Update(t.Context(), foo))
		if err != nil || foo.ResourceVersion != "2" {
			t.Fatalf("wrote version %s with %v, want 2 and no error", foo.ResourceVersion, err)
		}
		if err := c.Get(t.Context(), key, foo); err != nil || foo.ResourceVersion != "1" {
			t.Errorf("read version %s with %v, want 1 and no error", foo.ResourceVersion, err)
		}
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(meaning.FooKind)
		if err := c.Get(t.Context(), key, live); err != nil || live.GetResourceVersion() != "2" {
			t.Errorf("unstructured: read version %s with %v, want 2 and no error",
				live.GetResourceVersion(), err)
		}
	})
}

func TestReadYourWritesWaitsWithoutALimitForAnEventOfThatKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &api{version: 1}
		options := ctrl.Options{}
		options.Client.Cache = &client.CacheOptions{EnableReadYourWritesConsistency: new(true)}
		c := a.startManager(t, options).GetClient()
		foo := fooAt("web", 1)
		must.Do(t, c.Update(t.Context(), foo))
		read := make(chan error, 1)
		go func() { read <- c.Get(t.Context(), request.NamespacedName, foo) }()
		time.Sleep(24 * time.Hour)
		select {
		case err := <-read:
			t.Fatalf("got %v without an event, want that it waits", err)
		default:
		}

		event := metav1.WatchEvent{Type: "ADDED"}
		event.Object.Object = fooAt("another", 3)
		must.Do(t, json.NewEncoder(a.watch).Encode(event))
		if err := <-read; err != nil || foo.ResourceVersion != "1" {
			t.Errorf("read version %s with %v, want 1: there was no event of this Foo",
				foo.ResourceVersion, err)
		}
	})
}
