package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"reflect"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"example.com/sample-controller/examples/internal/meaning"
	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// The tests in facts_test.go and facts_*_test.go pin what docs/frameworks.md says about
// controller-runtime. They test no code of this program.

var (
	request     = ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "web"}}
	errInjected = errors.New("injected")
)

type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]

// startController starts a Controller with the default options in a bubble, and returns its queue.
func startController(
	ctx context.Context, t *testing.T, logger klog.Logger, reconcile reconcile.Func,
) queue {
	t.Helper()
	c := must.Get(controller.NewUnmanaged(controllerName, controller.Options{
		Reconciler: reconcile, Logger: logger, SkipNameValidation: new(true),
	}))(t)
	queues := make(chan queue, 1)
	must.Do(t, c.Watch(source.Func(func(_ context.Context, q queue) error {
		queues <- q
		return nil
	})))
	go func() { _ = c.Start(ctx) }()
	return <-queues
}

// observed is what a Controller did with one key.
type observed struct {
	calls            []time.Duration // of Reconcile, since the key was added
	logged           int             // errors
	errors, terminal float64         // as the metrics count them
}

// observe adds a key to a Controller whose Reconcile returns the result of the first call, the
// second and so on, and looks at it for that long.
func observe(
	t *testing.T, duration time.Duration, result func(call int) (ctrl.Result, error),
) (o observed) {
	t.Helper()
	const errorsTotal = "controller_runtime_reconcile_errors_total"
	const terminalTotal = "controller_runtime_terminal_reconcile_errors_total"
	errorsBefore, terminalBefore := counter(t, errorsTotal), counter(t, terminalTotal)
	synctest.Test(t, func(t *testing.T) {
		logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
		ctx, stop := context.WithCancel(t.Context())
		begin := time.Now()
		q := startController(ctx, t, logger,
			func(context.Context, ctrl.Request) (ctrl.Result, error) {
				o.calls = append(o.calls, time.Since(begin))
				return result(len(o.calls))
			})
		q.Add(request)
		time.Sleep(duration)
		stop()
		synctest.Wait()
		for _, entry := range logger.GetSink().(ktesting.Underlier).GetBuffer().Data() {
			if entry.Type == ktesting.LogError {
				o.logged++
			}
		}
	})
	o.errors = counter(t, errorsTotal) - errorsBefore
	o.terminal = counter(t, terminalTotal) - terminalBefore
	return o
}

func counter(t *testing.T, name string) float64 {
	t.Helper()
	for _, family := range must.Get(metrics.Registry.Gather())(t) {
		if family.GetName() == name {
			return family.GetMetric()[0].GetCounter().GetValue() // all Controllers here have one name
		}
	}
	return 0
}

func TestATerminalErrorIsCountedAndNotRetried(t *testing.T) {
	got := observe(t, time.Minute, func(int) (ctrl.Result, error) {
		return ctrl.Result{}, reconcile.TerminalError(errInjected)
	})
	want := observed{calls: []time.Duration{0}, logged: 1, errors: 1, terminal: 1}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestRequeueRetriesWithBackoffAndWithoutAnError(t *testing.T) {
	got := observe(t, time.Minute, func(call int) (ctrl.Result, error) {
		return ctrl.Result{Requeue: call < 4}, nil //nolint:staticcheck // deprecated, as the page says
	})
	const ms = time.Millisecond
	want := observed{calls: []time.Duration{0, 5 * ms, 15 * ms, 35 * ms}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestRequeueAfterResetsTheBackoff(t *testing.T) {
	got := observe(t, time.Minute, func(call int) (ctrl.Result, error) {
		switch call {
		case 1, 2, 4:
			return ctrl.Result{}, errInjected
		case 3:
			return ctrl.Result{RequeueAfter: time.Second}, nil
		}
		return ctrl.Result{}, nil
	})
	const ms = time.Millisecond
	want := observed{calls: []time.Duration{0, 5 * ms, 15 * ms, 1015 * ms, 1020 * ms},
		logged: 3, errors: 3}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestAFailingKeyWaitsUpToAThousandSeconds(t *testing.T) {
	calls := observe(t, time.Hour, func(int) (ctrl.Result, error) {
		return ctrl.Result{}, errInjected
	}).calls
	last := len(calls) - 1
	if got := calls[last] - calls[last-1]; got != 1000*time.Second {
		t.Errorf("waited %v in the end, want 1000s", got)
	}
}

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
