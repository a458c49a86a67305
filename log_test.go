package main

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// captureLog captures what the program logs with -v until the test ends. The returned function
// returns the lines so far that contain one of the texts.
func captureLog(t *testing.T, v int) func(texts ...string) []string {
	t.Helper()
	logger := ktesting.NewLogger(ktesting.NopTL{},
		ktesting.NewConfig(ktesting.Verbosity(v), ktesting.BufferLogs(true)))
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

var resourceVersion = regexp.MustCompile(`resourceVersion="\d+"`)

// Tools such as the lens follow a Foo by the messages that these tests hold.

// TestLogTellsTheWayOfAFoo has no errors in it: a key is queued, synced, and queued again because
// of what the sync wrote. A handler may log that before or after the sync ends.
func TestLogTellsTheWayOfAFoo(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		log := captureLog(t, 5)
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
			`"Foo added" object="default/example-foo" resourceVersion="N"`,
			`"Deployment added" object="default/web" resourceVersion="N"`,
			`"Foo updated" object="default/example-foo" resourceVersion="N"`,
			`"Deployment updated" object="default/web" resourceVersion="N"`,
			`"Foo updated" object="default/example-foo" resourceVersion="N"`,
			`"Foo deleted" object="default/example-foo" resourceVersion="N"`,
		} {
			queued = append(queued, "INFO Queueing Foo"+foo+" because="+event)
			if len(queued) > 1 {
				synced = append(synced, synced[0], synced[2])
			}
		}
		var got []string
		for _, line := range log("Queueing Foo") { // Events are written meanwhile, and count, too
			got = append(got, resourceVersion.ReplaceAllString(line, `resourceVersion="N"`))
		}
		expectLines(t, got, queued)
		expectLines(t, log("syncing Foo", "Created"), synced)
	})
}

func TestLogTellsHowSyncsFail(t *testing.T) {
	for v, normal := range map[int][]string{
		0: nil,
		4: {`INFO Retrying after a conflict foo="default/example-foo" err="updating status: Operation ` +
			`cannot be fulfilled on foos.samplecontroller.k8s.io \"web\": injected"`},
	} {
		bubble(t, func(t *testing.T, h *harness) {
			log := captureLog(t, v)
			utilruntime.ErrorHandlers = append(utilruntime.ErrorHandlers, // the harness only counts errors
				func(ctx context.Context, err error, message string, values ...any) {
					klog.FromContext(ctx).Error(err, message, values...)
				})
			h.Fail("create", "deployments", 2, apierrors.NewServiceUnavailable("injected"))
			h.Fail("update", "foos/status", 1, apierrors.NewConflict(v1alpha1.Resource("foos"), "web",
				errors.New("injected")))
			h.start()
			h.createFoo(newFoo("example-foo", "web", nil))
			h.wait(time.Second)
			h.stop()

			const failed = `ERROR Syncing failed, will retry err="creating Deployment: injected" ` +
				`foo="default/example-foo" retries=`
			want := append([]string{"INFO Starting the workers count=2", failed + "0", failed + "1"},
				append(normal, "INFO Stopped the workers")...)
			expectLines(t, log("workers", "etry"), want)
		})
	}
}

func TestLogSaysWhyAFooIsQueuedAgain(t *testing.T) {
	fail := func(verb string, err error) func(*testing.T, *harness) {
		return func(_ *testing.T, h *harness) { h.Fail(verb, "deployments", 1, err) }
	}
	for name, test := range map[string]struct {
		before func(*testing.T, *harness) // the controller starts
		want   []string
	}{
		"the event of a write is late": {
			before: func(t *testing.T, h *harness) {
				h.Lag("deployments", 5*time.Second)
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
				log := captureLog(t, 5)
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
