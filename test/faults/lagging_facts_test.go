package faults

import (
	"context"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/pkg/generated/clientset/versioned/scheme"
	fooclient "example.com/sample-controller/pkg/generated/clientset/versioned/typed/samplecontroller/v1alpha1"
)

// What an API server that lags answers.
const (
	oldState      = "the old state"
	newestState   = "the newest state"
	nothingYet    = "nothing yet"
	tooLarge      = "504: too large resource version"
	conflict      = "409"
	cacheWaitTime = 3 * time.Second // after which the API server gives up to wait for its cache
)

// lagFacts says what an API server that lags answers, and whether it first waits in the hope that
// it catches up. docs/reliability.md has the same table.
var lagFacts = []struct {
	request string
	ask     func(*staleFoo) (string, error)
	answer  string
	waits   bool
}{
	{"list, resourceVersion=0", list("0"), oldState, false},
	{"list", list(""), newestState, true},
	{"list, newest resourceVersion", list(newestState), tooLarge, true},
	{"stream", stream(""), tooLarge, true},
	{"stream, resourceVersion=0", stream("0"), oldState, false},
	{"stream, newest resourceVersion", stream(newestState), tooLarge, true},
	{"watch", follow(""), tooLarge, true},
	{"watch, newest resourceVersion", follow(newestState), nothingYet, false},
	{"get, resourceVersion=0", get("0"), oldState, false},
	{"get", get(""), newestState, false},
	{"update of the old state", update, conflict, false},
	{"deletion of the old state", remove, conflict, false},
}

// staleFoo is a Foo with one replica that has got two, which the API server does not show.
type staleFoo struct {
	t        *testing.T
	foos     fooclient.FoosGetter // of the API server that lags
	old, new *v1alpha1.Foo
}

// TestWhatALaggingAPIServerAnswers is about Kubernetes, and not about the controller.
func TestWhatALaggingAPIServerAnswers(t *testing.T) {
	t.Parallel()
	server := lagging(t)
	h := newHistory(t, 0)
	h.createFoo(newFoo("a", "a", 1))
	before, err := h.foos.Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := waitUntil(server.catchUp); err != nil {
		t.Fatal(err)
	}
	server.hold(fooKeys)
	after := before.DeepCopy()
	after.Spec.Replicas = new(int32(2))
	if after, err = h.foos.Update(t.Context(), after, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for _, fact := range lagFacts {
		all.Go(func() {
			begin := time.Now()
			foo := &staleFoo{t, server.foos.SamplecontrollerV1alpha1(), before, after}
			got, err := fact.ask(foo)
			took := time.Since(begin)
			if err != nil || got != fact.answer || fact.waits && took < cacheWaitTime {
				t.Errorf("%s: got %s, error %v, after %v; want %s (it waits: %t)",
					fact.request, got, err, took, fact.answer, fact.waits)
			}
		})
	}
	all.Wait()
	checkFollows(t, h, server, after)
}

// checkFollows checks that a watch shows what is missing, once the API server has caught up.
func checkFollows(t *testing.T, h *history, server *laggingServer, after *v1alpha1.Foo) {
	t.Helper()
	watcher, err := server.foos.SamplecontrollerV1alpha1().Foos(h.namespace).Watch(t.Context(),
		metav1.ListOptions{ResourceVersion: after.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()
	h.createFoo(newFoo("b", "b", 1))
	server.release()
	select {
	case event := <-watcher.ResultChan():
		if foo, ok := event.Object.(*v1alpha1.Foo); !ok || foo.Name != "b" {
			t.Errorf("the watch shows %+v, want Foo b first", event)
		}
	case <-time.After(*patience):
		t.Error("the watch shows nothing although the API server has caught up")
	}
}

// which says which state of the Foo this is.
func which(foo *v1alpha1.Foo) string {
	if *foo.Spec.Replicas == 1 {
		return oldState
	}
	return newestState
}

// version returns the resourceVersion that a request names.
func (f *staleFoo) version(named string) string {
	if named == newestState {
		return f.new.ResourceVersion
	}
	return named
}

// list asks without a second try, of which client-go makes ten.
func list(named string) func(*staleFoo) (string, error) {
	return func(f *staleFoo) (string, error) {
		options := metav1.ListOptions{ResourceVersion: f.version(named)}
		client := f.foos.(fooclient.SamplecontrollerV1alpha1Interface).RESTClient()
		var found v1alpha1.FooList
		err := client.Get().Namespace(f.old.Namespace).Resource("foos").MaxRetries(0).
			VersionedParams(&options, scheme.ParameterCodec).Do(f.t.Context()).Into(&found)
		if err != nil {
			return whichError(err)
		}
		return which(&found.Items[0]), nil
	}
}

// stream is how an informer begins today.
func stream(named string) func(*staleFoo) (string, error) {
	return func(f *staleFoo) (string, error) {
		return f.watch(metav1.ListOptions{
			ResourceVersion:   f.version(named),
			SendInitialEvents: new(true), AllowWatchBookmarks: true,
			ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		})
	}
}

// follow is how an informer goes on after a list, or when its watch has ended.
func follow(named string) func(*staleFoo) (string, error) {
	return func(f *staleFoo) (string, error) {
		return f.watch(metav1.ListOptions{ResourceVersion: f.version(named)})
	}
}

// watch returns what a watch shows first.
func (f *staleFoo) watch(options metav1.ListOptions) (string, error) {
	ctx, cancel := context.WithTimeout(f.t.Context(), 2*cacheWaitTime)
	defer cancel()
	watcher, err := f.foos.Foos(f.old.Namespace).Watch(ctx, options)
	if err != nil {
		return "", err
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		if event.Type == watch.Error {
			return whichError(apierrors.FromObject(event.Object))
		}
		if foo, ok := event.Object.(*v1alpha1.Foo); ok && event.Type == watch.Added {
			return which(foo), nil
		}
	}
	return nothingYet, nil
}

// whichError says what the error means, or returns it.
func whichError(err error) (string, error) {
	switch {
	case apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge):
		return tooLarge, nil
	case apierrors.IsConflict(err):
		return conflict, nil
	}
	return "", err
}

func get(named string) func(*staleFoo) (string, error) {
	return func(f *staleFoo) (string, error) {
		foo, err := f.foos.Foos(f.old.Namespace).Get(
			f.t.Context(), f.old.Name, metav1.GetOptions{ResourceVersion: f.version(named)})
		if err != nil {
			return whichError(err)
		}
		return which(foo), nil
	}
}

func update(f *staleFoo) (string, error) {
	foo := f.old.DeepCopy()
	foo.Spec.DeploymentName = "b"
	_, err := f.foos.Foos(foo.Namespace).Update(f.t.Context(), foo, metav1.UpdateOptions{})
	return whichError(err)
}

func remove(f *staleFoo) (string, error) {
	err := f.foos.Foos(f.old.Namespace).Delete(f.t.Context(), f.old.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{ResourceVersion: &f.old.ResourceVersion},
	})
	return whichError(err)
}
