package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/sample-controller/examples/internal/meaning"
	"example.com/sample-controller/internal/testing/fakes"
	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// These tests pin what docs/frameworks.md says about controller-runtime and its documentation does
// not. They test no code of this program.

var (
	request     = ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "web"}}
	errInjected = errors.New("injected")
)

// api is an API server that has one Foo. It needs no network, so that a test can run in a bubble.
type api struct {
	forbids  atomic.Bool
	requests atomic.Int32
	events   atomic.Int32 // that were written

	mu      sync.Mutex
	version int            // the resourceVersion of the Foo
	watch   *io.PipeWriter // what is written to it is sent as an event
}

func (a *api) RoundTrip(r *http.Request) (*http.Response, error) {
	if path.Base(r.URL.Path) == "events" {
		time.Sleep(time.Second) // as if it were busy
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests.Add(1)
	response := httptest.NewRecorder()
	response.Header().Set("Content-Type", "application/json")
	var answer any
	switch query := r.URL.Query(); {
	case a.forbids.Load():
		response.WriteHeader(http.StatusForbidden)
	case query.Has("sendInitialEvents"):
		response.WriteHeader(http.StatusUnprocessableEntity) // a list does the same, and is shorter
	case query.Has("watch"):
		result := response.Result()
		result.Body, a.watch = io.Pipe()
		return result, nil
	case path.Base(r.URL.Path) == "events":
		a.events.Add(1)
		answer = struct{}{}
	case path.Base(r.URL.Path) == "web":
		if r.Method == http.MethodPut {
			a.version++
		}
		answer = fooAt("web", a.version)
	default:
		version := strconv.Itoa(a.version)
		answer = &v1alpha1.FooList{
			TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "FooList"},
			ListMeta: metav1.ListMeta{ResourceVersion: version},
			Items:    []v1alpha1.Foo{*fooAt("web", a.version)},
		}
	}
	err := json.NewEncoder(response).Encode(answer)
	return response.Result(), err
}

func fooAt(name string, version int) *v1alpha1.Foo {
	foo := &v1alpha1.Foo{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: name, ResourceVersion: strconv.Itoa(version),
	}}
	foo.SetGroupVersionKind(meaning.FooKind)
	return foo
}

func (a *api) newManager(t *testing.T, options ctrl.Options) ctrl.Manager {
	t.Helper()
	options.Scheme = runtime.NewScheme()
	must.Do(t, v1alpha1.Install(options.Scheme))
	options.MapperProvider = func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
		mapper := meta.NewDefaultRESTMapper(nil)
		mapper.Add(meaning.FooKind, meta.RESTScopeNamespace)
		return mapper, nil
	}
	options.Metrics.BindAddress = "0"
	options.Controller.SkipNameValidation = new(true)
	return must.Get(ctrl.NewManager(
		&rest.Config{Host: "http://api", Transport: a, QPS: -1}, options))(t)
}

func (a *api) startManager(t *testing.T, options ctrl.Options) ctrl.Manager {
	t.Helper()
	mgr := a.newManager(t, options)
	go func() { _ = mgr.Start(t.Context()) }()
	synctest.Wait()
	return mgr
}

func TestSetControllerReferenceTakesOverObjects(t *testing.T) {
	scheme := runtime.NewScheme()
	must.Do(t, v1alpha1.Install(scheme))
	owner := func(name string) metav1.OwnerReference {
		return metav1.OwnerReference{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: "Foo", Name: name, UID: "old",
			Controller: new(true),
		}
	}
	for name, test := range map[string]struct {
		owners    []metav1.OwnerReference
		takesOver bool
	}{
		"of nobody":                {nil, true},
		"of a deleted Foo":         {[]metav1.OwnerReference{owner("web")}, true},
		"of a Foo of another name": {[]metav1.OwnerReference{owner("other")}, false},
	} {
		foo := &v1alpha1.Foo{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "new"}}
		child := &metav1.ObjectMeta{Name: "web", UID: "exists", OwnerReferences: test.owners}
		err := controllerutil.SetControllerReference(foo, child, scheme)
		got := metav1.IsControlledBy(child, foo)
		if got != test.takesOver || got != (err == nil) {
			t.Errorf("%s: taken over is %v, want %v; error %v", name, got, test.takesOver, err)
		}
	}
}

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
