package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	k8smetrics "k8s.io/component-base/metrics"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"example.com/sample-controller/internal/fakes"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	listers "example.com/sample-controller/pkg/generated/listers/samplecontroller/v1alpha1"
)

// gather returns what a registry serves, by name and labels: `name{label="value"}`.
func gather(t *testing.T, registry k8smetrics.KubeRegistry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			var labels []string
			for _, label := range metric.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", label.GetName(), label.GetValue()))
			}
			name := family.GetName() + "{" + strings.Join(labels, ",") + "}"
			values[name] = metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
		}
	}
	return values
}

func TestFailedSyncsAreCountedByReason(t *testing.T) {
	registry := k8smetrics.NewKubeRegistry()
	registry.MustRegister(syncErrors)
	before := gather(t, registry)
	bubble(t, func(_ *testing.T, h *harness) {
		h.answer("create", "deployments", 2, apierrors.NewServiceUnavailable("injected"))
		h.answer("update", "foos/status", 1, apierrors.NewConflict(v1alpha1.Resource("foos"), "a",
			errors.New("injected")))
		h.start()
		h.createFoo(newFoo("a", "a", nil))
		time.Sleep(time.Minute) // virtual
	})
	counted := map[string]float64{}
	for name, value := range gather(t, registry) {
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

func TestReasonsOfSyncErrors(t *testing.T) {
	deployments := appsv1.Resource("deployments")
	for _, test := range []struct {
		err  error
		want string
	}{
		{apierrors.NewForbidden(deployments, "a", errors.New("no")), "Forbidden"},
		{fmt.Errorf("creating Deployment: %w", apierrors.NewInternalError(errors.New("no"))),
			"InternalError"},
		{&url.Error{Op: "Get", URL: "https://127.0.0.1", Err: errors.New("refused")}, "NoAnswer"},
		{fmt.Errorf("updating status: %w", context.DeadlineExceeded), "NoAnswer"},
		{errors.New("a bug"), "Other"},
		// A webhook may answer with any reason.
		{&apierrors.StatusError{ErrStatus: metav1.Status{
			Code: http.StatusTeapot, Reason: "IAmATeapot"}}, "Other"},
	} {
		if got := syncErrorReason(test.err); got != test.want {
			t.Errorf("%v: got reason %q, want %q", test.err, got, test.want)
		}
	}
}

func TestFoosAreCountedByReadiness(t *testing.T) {
	at := func(second int64) metav1.Time { return metav1.NewTime(time.Unix(second, 0)) }
	foos := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	// add adds a Foo of generation 2. Without a reason, it has no condition.
	add := func(name string, status metav1.ConditionStatus, reason string, observed, since int64) {
		foo := newFoo(name, name, nil)
		foo.Generation, foo.CreationTimestamp = 2, at(50)
		if reason != "" {
			foo.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: status,
				Reason: reason, ObservedGeneration: observed, LastTransitionTime: at(since)}}
		}
		if err := foos.Add(foo); err != nil {
			t.Fatal(err)
		}
	}
	registry := k8smetrics.NewKubeRegistry()
	registry.CustomMustRegister(&fooCollector{foos: listers.NewFooLister(foos)})
	check := func(want map[string]float64) {
		t.Helper()
		if got := gather(t, registry); !maps.Equal(got, want) {
			t.Errorf("metrics: got\n%v, want\n%v", got, want)
		}
	}
	check(map[string]float64{`foo_controller_foos{ready="True",reason="Available"}`: 0})

	add("ready", metav1.ConditionTrue, "Available", 2, 60)
	add("changed", metav1.ConditionTrue, "Available", 1, 60)
	add("new", "", "", 0, 0)
	add("taken-late", metav1.ConditionFalse, "DeploymentNameTaken", 2, 80)
	add("taken-early", metav1.ConditionFalse, "DeploymentNameTaken", 1, 70)
	add("taken-later", metav1.ConditionFalse, "DeploymentNameTaken", 2, 90)
	add("strange", metav1.ConditionFalse, "SomebodyElsesReason", 2, 75)
	check(map[string]float64{
		`foo_controller_foos{ready="True",reason="Available"}`:                           1,
		`foo_controller_foos{ready="Unknown",reason="NotObserved"}`:                      2,
		`foo_controller_foos{ready="False",reason="DeploymentNameTaken"}`:                3,
		`foo_controller_foos{ready="False",reason="Other"}`:                              1,
		`foo_controller_not_ready_since_timestamp_seconds{reason="NotObserved"}`:         50,
		`foo_controller_not_ready_since_timestamp_seconds{reason="DeploymentNameTaken"}`: 70,
		`foo_controller_not_ready_since_timestamp_seconds{reason="Other"}`:               75,
	})
}

// captureLog captures what the program logs at -v=5 until the test ends. The returned function
// returns the lines so far that contain one of the texts.
func captureLog(t *testing.T) func(texts ...string) []string {
	t.Helper()
	logger := ktesting.NewLogger(ktesting.NopTL{},
		ktesting.NewConfig(ktesting.Verbosity(5), ktesting.BufferLogs(true)))
	t.Cleanup(klog.CaptureState().Restore)
	klog.SetLoggerWithOptions(logger, klog.ContextualLogger(true))
	buffer := logger.GetSink().(ktesting.Underlier).GetBuffer()
	return func(texts ...string) (found []string) {
		for line := range strings.Lines(buffer.String()) {
			contains := func(text string) bool { return strings.Contains(line, text) }
			if slices.ContainsFunc(texts, contains) {
				found = append(found, strings.TrimSuffix(line, "\n"))
			}
		}
		return found
	}
}

// TestLogTellsTheWayOfAFoo has no errors in it: a key is queued, synced, and queued again because
// of what the sync wrote. A handler may log that before or after the sync ends.
func TestLogTellsTheWayOfAFoo(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		log := captureLog(t)
		h.start()
		h.createFoo(newFoo("example-foo", "web", nil))
		h.rollOut("web")
		h.deleteFoo("example-foo")

		queued := []string{
			`INFO Queueing Foo foo="default/example-foo" because="Foo added" object="default/example-foo" resourceVersion="2"`,
			`INFO Queueing Foo foo="default/example-foo" because="Deployment added" object="default/web" resourceVersion="2"`,
			`INFO Queueing Foo foo="default/example-foo" because="Foo updated" object="default/example-foo" resourceVersion="3"`,
			`INFO Queueing Foo foo="default/example-foo" because="Deployment updated" object="default/web" resourceVersion="3"`,
			`INFO Queueing Foo foo="default/example-foo" because="Foo updated" object="default/example-foo" resourceVersion="4"`,
			`INFO Queueing Foo foo="default/example-foo" because="Foo deleted" object="default/example-foo" resourceVersion="4"`,
		}
		if got := log("Queueing Foo"); !slices.Equal(got, queued) {
			t.Errorf("queued: got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(queued, "\n"))
		}
		const started = `INFO Started syncing Foo foo="default/example-foo"`
		const finished = `INFO Finished syncing Foo foo="default/example-foo" duration="0s"`
		synced := []string{
			started, `INFO Created Deployment foo="default/example-foo" deployment="default/web"`, finished,
		}
		for range queued[1:] {
			synced = append(synced, started, finished)
		}
		if got := log("syncing Foo", "Created"); !slices.Equal(got, synced) {
			t.Errorf("synced: got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(synced, "\n"))
		}
	})
}

func TestLogSaysWhyAFooIsQueuedAgain(t *testing.T) {
	const again = `INFO Queueing Foo again foo="default/example-foo" `
	for name, test := range map[string]struct {
		before func(*testing.T, *harness) // the controller starts
		want   []string
	}{
		"the event of a write is late": {
			before: func(t *testing.T, h *harness) {
				fakes.Lag(t, &h.kube.Fake, "deployments", 5*time.Second)
			},
			want: []string{
				again + `after="1s" because="the cache does not show the last write yet"`,
				again + `because="no sync has seen the last write"`,
			},
		},
		"the Deployment is somebody else's": {
			before: func(_ *testing.T, h *harness) { h.createDeployment(foreignDeployment(nil)) },
			want:   []string{again + `after="15s" because="the Deployment belongs to somebody else"`},
		},
		"the API server refuses the Deployment": {
			before: func(_ *testing.T, h *harness) {
				h.answer("create", "deployments", 1,
					apierrors.NewForbidden(deploymentsResource, "web", errors.New("injected")))
			},
			want: []string{again + `after="15s" because="the API server refuses the Deployment"`},
		},
		"the Deployment goes while it is updated": {
			before: func(_ *testing.T, h *harness) {
				h.answer("update", "deployments", 1,
					apierrors.NewNotFound(deploymentsResource, "web"))
			},
			want: []string{again + `after="1s" because="the Deployment was deleted in between"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, h *harness) {
				log := captureLog(t)
				test.before(t, h)
				h.start()
				h.createFoo(newFoo("example-foo", "web", nil))
				h.changeFoo("example-foo", func(foo *v1alpha1.Foo) { foo.Spec.Replicas = new(int32(2)) })
				time.Sleep(time.Minute) // virtual
				synctest.Wait()

				got := log("again")
				slices.Sort(got)
				if got = slices.Compact(got); !slices.Equal(got, test.want) {
					t.Errorf("queued again: got\n%s\nwant\n%s",
						strings.Join(got, "\n"), strings.Join(test.want, "\n"))
				}
			})
		})
	}
}
