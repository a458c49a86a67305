package main

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"example.com/sample-controller/internal/fakes"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

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
				h.answer("patch", "deployments", 1,
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
