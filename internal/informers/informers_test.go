package informers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	kubeinformers "k8s.io/client-go/informers"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/internal/testing/must"
)

var (
	pods      = corev1.Resource("pods")
	forbidden = apierrors.NewForbidden(pods, "", errors.New("injected"))
)

func TestMain(m *testing.M) {
	// One of the handlers sleeps for the difference between the time in a bubble and the real time.
	utilruntime.ErrorHandlers = nil
	m.Run()
}

func TestGroupIsReadyWhenItsCachesAreFilledOrSaysWhyNot(t *testing.T) {
	for _, test := range []struct {
		err  error // of all lists
		want string
	}{
		{nil, "<nil>"},
		{forbidden, "grant it"},
		{apierrors.NewNotFound(pods, ""), "install it"},
		{errors.New("injected"), "no answer within --cache-sync-timeout=1m0s"},
	} {
		synctest.Test(t, func(t *testing.T) {
			kube := kubefake.NewClientset()
			kube.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
				return test.err != nil, nil, test.err
			})
			factory := kubeinformers.NewSharedInformerFactory(kube, 0)
			informer := factory.Core().V1().Pods().Informer()
			g := &Group{
				Factories: []Factory{factory}, Informers: []cache.SharedIndexInformer{informer},
				SyncTimeout: time.Minute, InstallHint: "install it",
			}
			if err := g.Check(nil); err == nil {
				t.Error("the group is ready before its start")
			}
			ctx, fail := context.WithCancelCause(t.Context())
			err := g.Start(ctx, t.Context(), fail)
			if err == nil {
				err = context.Cause(ctx)
			}
			if got := fmt.Sprint(err); !strings.Contains(got, test.want) {
				t.Errorf("got error %v, want it to contain %q", got, test.want)
			}
			if ready := g.Check(nil) == nil; ready != (test.err == nil) {
				t.Errorf("with the error %v, ready: got %v", test.err, ready)
			}
		})
	}
}

// transport is an API server that answers so.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestListWaitsUntilItsResourceIsServed(t *testing.T) {
	const text, object = "text/plain; charset=utf-8", "application/json"
	for _, test := range []struct {
		query, contentType string
		missing            int // how often the answer is that there is none
		wantCode           int
		want               time.Duration
	}{
		{"?watch=true", text, 0, http.StatusOK, 0},
		{"?watch=true", text, 3, http.StatusOK, 1500 * time.Millisecond},
		{"?resourceVersion=0", text, 1, http.StatusOK, 500 * time.Millisecond},
		{"?limit=500", text, 1000, http.StatusNotFound, 15 * time.Second},
		{"?watch=true", object, 3, http.StatusNotFound, 0},
		{"", text, 3, http.StatusNotFound, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			asked, begin := 0, time.Now()
			server := transport(func(*http.Request) (*http.Response, error) {
				asked++
				code := http.StatusOK
				if asked <= test.missing {
					code = http.StatusNotFound
				}
				header := http.Header{"Content-Type": {test.contentType}}
				return &http.Response{StatusCode: code, Header: header, Body: http.NoBody}, nil
			})
			r := httptest.NewRequest(http.MethodGet, "/apis/example.com/v1/foos"+test.query, nil)
			response := must.Get(WaitUntilServed(server).RoundTrip(r))(t)
			if response.StatusCode != test.wantCode || time.Since(begin) != test.want {
				t.Errorf("%+v: got code %d after %v", test, response.StatusCode, time.Since(begin))
			}
		})
	}
}

func TestForbiddenWatchFailsInTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failure error
		g := &Group{}
		g.synced.Store(true)
		reflector := cache.NewReflector(&cache.ListWatch{}, nil, nil, 0)
		handler := g.watchErrorHandler(func(err error) { failure = err })

		for range 6 { // the last after 25s
			handler(t.Context(), reflector, forbidden)
			time.Sleep(5 * time.Second)
		}
		if failure != nil {
			t.Errorf("after 25s: got error %v, want none yet", failure)
		}
		handler(t.Context(), reflector, forbidden)
		if failure == nil || !strings.Contains(failure.Error(), "grant it") {
			t.Errorf(`after 30s: got error %v, want it to contain "grant it"`, failure)
		}

		failure = nil
		time.Sleep(time.Hour)
		for range 4 { // as when one API server after the other restarts
			handler(t.Context(), reflector, forbidden)
			time.Sleep(time.Minute)
		}
		if failure != nil {
			t.Errorf("an hour later, four errors in four minutes: got %v, want none", failure)
		}
	})
}

func TestCacheHasNoManagedFields(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: "web", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "somebody"}},
	}}
	stripped, err := StripManagedFields(pod)
	if err != nil || stripped.(*corev1.Pod).Name != "web" || pod.ManagedFields != nil {
		t.Errorf("got %v (error %v), want the Pod without its managedFields", stripped, err)
	}
	unknown := cache.DeletedFinalStateUnknown{Key: "default/web"}
	if got, err := StripManagedFields(unknown); err != nil || got != unknown {
		t.Errorf("got %v (error %v), want the tombstone unchanged", got, err)
	}
}
