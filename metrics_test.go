package main

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	k8smetrics "k8s.io/component-base/metrics"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"example.com/sample-controller/internal/testing/fakes"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

func TestFailedSyncsAreCountedByReason(t *testing.T) {
	registry := k8smetrics.NewKubeRegistry()
	registry.MustRegister(syncErrors.CounterVec)
	before := fakes.Gather(t, registry)
	bubble(t, func(_ *testing.T, h *harness) {
		h.answer("create", "deployments", 2, apierrors.NewServiceUnavailable("injected"))
		h.answer("update", "foos/status", 1, apierrors.NewConflict(v1alpha1.Resource("foos"), "a",
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

func expectLines(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("logged: got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
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

		const foo = ` foo="default/example-foo"`
		synced := []string{"INFO Started syncing Foo" + foo,
			"INFO Created Deployment" + foo + ` deployment="default/web"`,
			"INFO Finished syncing Foo" + foo + ` duration="0s"`}
		var queued []string
		for _, event := range []string{
			`"Foo added" object="default/example-foo" resourceVersion="2"`,
			`"Deployment added" object="default/web" resourceVersion="2"`,
			`"Foo updated" object="default/example-foo" resourceVersion="3"`,
			`"Deployment updated" object="default/web" resourceVersion="3"`,
			`"Foo updated" object="default/example-foo" resourceVersion="4"`,
			`"Foo deleted" object="default/example-foo" resourceVersion="4"`,
		} {
			queued = append(queued, "INFO Queueing Foo"+foo+" because="+event)
			if len(queued) > 1 {
				synced = append(synced, synced[0], synced[2])
			}
		}
		expectLines(t, log("Queueing Foo"), queued)
		expectLines(t, log("syncing Foo", "Created"), synced)
	})
}

func TestLogSaysWhyAFooIsQueuedAgain(t *testing.T) {
	fail := func(verb string, err error) func(*testing.T, *harness) {
		return func(_ *testing.T, h *harness) { h.answer(verb, "deployments", 1, err) }
	}
	for name, test := range map[string]struct {
		before func(*testing.T, *harness) // the controller starts
		want   []string
	}{
		"the event of a write is late": {
			before: func(t *testing.T, h *harness) {
				fakes.Lag(t, &h.kube.Fake, "deployments", 5*time.Second)
			},
			want: []string{`after="1s" because="the cache does not show the last write yet"`,
				`because="no sync has seen the last write"`},
		},
		"the Deployment is somebody else's": {
			before: func(_ *testing.T, h *harness) { h.createDeployment(foreignDeployment(nil)) },
			want:   []string{`after="15s" because="the Deployment belongs to somebody else"`},
		},
		"the API server refuses the Deployment": {
			before: fail("create", apierrors.NewForbidden(deploymentsResource, "web", errInjected)),
			want:   []string{`after="15s" because="the API server refuses the Deployment"`},
		},
		"the Deployment goes while it is updated": {
			before: fail("patch", apierrors.NewNotFound(deploymentsResource, "web")),
			want:   []string{`after="1s" because="the Deployment was deleted in between"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, h *harness) {
				log := captureLog(t)
				test.before(t, h)
				h.start()
				h.createFoo(newFoo("example-foo", "web", nil))
				h.changeFoo("example-foo", func(foo *v1alpha1.Foo) { foo.Spec.Replicas = new(int32(2)) })
				h.wait(time.Minute)

				var want []string
				for _, line := range test.want {
					want = append(want, `INFO Queueing Foo again foo="default/example-foo" `+line)
				}
				expectLines(t, slices.Compact(slices.Sorted(slices.Values(log("again")))), want)
			})
		})
	}
}
