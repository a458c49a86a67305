package main

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	k8smetrics "k8s.io/component-base/metrics"

	"example.com/sample-controller/internal/testing/fakes"
	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// runOn runs the program on an API server that answers with handler.
func runOn(ctx context.Context, t *testing.T, handler http.HandlerFunc) error {
	t.Helper()
	server := httptest.NewServer(handler)
	defer server.Close()
	flags := []string{"--health-probe-bind-address=0", "--metrics-bind-address=0"}
	o := must.Get(parseFlags(flags, io.Discard))(t)
	p, _, err := newProcess(ctx, &rest.Config{Host: server.URL}, o, nil)
	must.Do(t, err)
	return p.Run(ctx)
}

func TestForbiddenWatchEndsTheProcess(t *testing.T) {
	err := runOn(t.Context(), t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/apis/samplecontroller.k8s.io/v1alpha1" {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"kind":"APIResourceList","resources":[]}`)
			return
		}
		http.Error(w, "injected", http.StatusForbidden)
	})
	if err == nil || !strings.Contains(err.Error(), "grant it") {
		t.Errorf(`got error %v, want it to contain "grant it"`, err)
	}
}

func TestStopBeforeTheFirstAnswerIsNoFailure(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	err := runOn(ctx, t, func(_ http.ResponseWriter, r *http.Request) {
		stop()
		<-r.Context().Done()
	})
	if err != nil {
		t.Errorf("got error %v, want none", err)
	}
}

func TestNegativeResyncIsRefused(t *testing.T) {
	const want = "--resync must not be negative, but is -1s; --help lists all flags"
	if _, err := parseFlags([]string{"--resync=-1s"}, io.Discard); err == nil || err.Error() != want {
		t.Errorf("got error %v, want %q", err, want)
	}
}

func TestShutdownFinishesWhatHasBegunAndNoMore(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		takes := 3 * time.Second // a create
		h.Before("create", "deployments", 3, func(ctx context.Context) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(takes):
				return nil
			}
		})
		h.start()
		for _, name := range []string{"a", "b", "c"} { // one more than there are workers
			h.createFoo(newFoo(name, name, nil))
		}
		begin := time.Now()
		h.stop()

		if got := time.Since(begin).Round(time.Second); got != 3*time.Second {
			t.Errorf("stopping took %v, want the 3s of the creates under way", got)
		}
		if !h.deploymentExists("a") || !h.deploymentExists("b") || h.deploymentExists("c") {
			t.Error("want Deployments a and b, whose creates had begun, and not c")
		}
		h.expectEvents("DeploymentCreated", 2) // written before the end

		takes = time.Hour
		h.start()
		begin = time.Now()
		h.stop()
		if got := time.Since(begin); got > 10*time.Second {
			t.Errorf("stopping took %v, want 10s at most", got)
		}
	})
}

func TestQueueOfAStandbyStaysEmpty(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.options.LeaderElect, h.options.Leader.Namespace = true, namespace
		h.start()
		stopLeader := h.stop
		h.start()
		h.createFoo(newFoo("example-foo", "web", nil))
		if got := h.controller.queue.Len(); got != 0 || !h.deploymentExists("web") {
			t.Errorf("got %d keys in the queue, want none, and the leader's Deployment", got)
		}
		stopLeader()
		h.wait(time.Minute) // or the standby would never have worked, and left its queue to the bubble
	})
}

func TestNamespaceFlagNarrowsTheWatch(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.options.Namespace = "elsewhere"
		h.start()
		h.createFoo(newFoo("example-foo", "web", nil))

		if h.deploymentExists("web") {
			t.Error("a Foo outside --namespace got a Deployment")
		}
	})
}

func TestCacheHoldsOnlyDeploymentsOfFoos(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.createDeployment(foreignDeployment(nil))
		h.start()
		h.createFoo(newFoo("example-foo", "of-a-foo", nil))

		got := h.controller.deploymentsByUID.ListKeys()
		if !slices.Equal(got, []string{"default/of-a-foo"}) {
			t.Errorf("keys in the cache: got %v, want [default/of-a-foo]", got)
		}
	})
}

// TestTwoProcessesDoTheSameWorkTwice shows why there is leader election. Without it, work is wasted
// but nothing breaks: the API server refuses the second Create.
func TestTwoProcessesDoTheSameWorkTwice(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		// Each process tries to create the Deployment before it can see the other's.
		h.start()
		h.start()
		h.Lag("deployments", 5*time.Second)
		h.createFoo(newFoo("example-foo", "web", nil))

		h.expectWrites("create", "deployments", 2) // one from each process
		h.expectWrites("get", "deployments", 1)    // from the second one, which then waits
	})
}

func TestFailedSyncsAreCountedByReason(t *testing.T) {
	registry := k8smetrics.NewKubeRegistry()
	registry.MustRegister(syncErrors.CounterVec)
	before := fakes.Gather(t, registry)
	bubble(t, func(_ *testing.T, h *harness) {
		h.Fail("create", "deployments", 2, apierrors.NewServiceUnavailable("injected"))
		h.Fail("update", "foos/status", 1, apierrors.NewConflict(v1alpha1.Resource("foos"), "a",
			errors.New("injected")))
		h.start()
		h.createFoo(newFoo("a", "a", nil))
		time.Sleep(time.Minute) // virtual
	})
	counted := map[string]float64{}
	for name, value := range fakes.Gather(t, registry) {
		if delta := value - before[name]; delta > 0 {
			counted[name] = delta
		}
	}
	want := map[string]float64{
		`foo_controller_sync_errors_total{reason="ServiceUnavailable"}`: 2,
		`foo_controller_sync_errors_total{reason="Conflict"}`:           1,
	}
	if !maps.Equal(counted, want) {
		t.Errorf("counted: got %v, want %v", counted, want)
	}
}
