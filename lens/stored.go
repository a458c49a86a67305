package main

import (
	"context"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/lens/model"
	"example.com/sample-controller/lens/wire"
)

const (
	// askInterval is how often the API server is asked whether it is there.
	askInterval = 500 * time.Millisecond
	// askTimeout is how long it may take to answer.
	askTimeout = 5 * time.Second
)

// watched is what a program watches.
type watched struct {
	resource  schema.GroupVersionResource
	namespace string // "" for all
}

// watchOf returns what the program begins to watch. ok is false if that is not a whole resource.
func watchOf(e *wire.Event) (w watched, ok bool) {
	ok = e.Kind == wire.RequestArrived && e.Verb == "watch" && e.Resource != "" && e.Name == ""
	return watched{schema.ParseGroupResource(e.Resource).WithVersion(e.Version), e.Namespace}, ok
}

// follow tells what the API server stores of a resource, until ctx is done. It asks past the proxy,
// and without the selectors of the program: an object that loses its label is still there.
func (l *lens) follow(ctx context.Context, client dynamic.Interface, w watched) {
	objects := client.Resource(w.resource).Namespace(w.namespace)
	requests := &cache.ListWatch{
		ListWithContextFunc: func(
			ctx context.Context, options metav1.ListOptions,
		) (runtime.Object, error) {
			return objects.List(ctx, options)
		},
		WatchFuncWithContext: objects.Watch,
	}
	to := &store{
		resource: w.resource.GroupResource().String(),
		see:      func(stored model.Stored) { l.see(model.Seen{Stored: &stored}) },
	}
	// A person waits for an API server that comes back.
	soon := &wait.Backoff{Duration: askInterval, Factor: 1, Steps: 1}
	cache.NewReflectorWithOptions(requests, &unstructured.Unstructured{}, to,
		cache.ReflectorOptions{Backoff: soon}).RunWithContext(ctx)
}

// store is what a Reflector writes to. It tells each change.
type store struct {
	resource string
	stored   map[cache.ObjectName]*wire.Object // nil until the first list
	see      func(model.Stored)
}

// Add is called for a new object.
func (s *store) Add(object any) error { return s.Update(object) }

// Update is called for a changed object.
func (s *store) Update(object any) error {
	s.set(wire.ObjectOf(s.resource, object.(runtime.Object)), false)
	return nil
}

// Delete is called for an object that is gone.
func (s *store) Delete(object any) error {
	s.drop(wire.ObjectOf(s.resource, object.(runtime.Object)))
	return nil
}

// Replace is called with a list of all objects.
func (s *store) Replace(objects []any, _ string) error {
	initial := s.stored == nil
	gone := maps.Clone(s.stored)
	if initial {
		s.stored = map[cache.ObjectName]*wire.Object{}
	}
	for _, object := range objects {
		now := wire.ObjectOf(s.resource, object.(runtime.Object))
		delete(gone, cache.NewObjectName(now.Namespace, now.Name))
		s.set(now, initial)
	}
	for _, object := range gone {
		s.drop(object)
	}
	return nil
}

// Resync does nothing.
func (s *store) Resync() error { return nil }

func (s *store) set(now *wire.Object, initial bool) {
	name := cache.NewObjectName(now.Namespace, now.Name)
	before, change := s.stored[name], watch.Modified
	if before != nil && before.UID != now.UID {
		s.drop(before)
		before = nil
	}
	switch {
	case before == nil:
		change = watch.Added
	case before.ResourceVersion == now.ResourceVersion:
		return
	}
	s.stored[name] = now
	s.see(model.Stored{Type: string(change), Object: now, Initial: initial})
}

func (s *store) drop(object *wire.Object) {
	delete(s.stored, cache.NewObjectName(object.Namespace, object.Name))
	s.see(model.Stored{Type: string(watch.Deleted), Object: object})
}

// askServer tells whether the API server is there, until ctx is done.
func (l *lens) askServer(ctx context.Context, client rest.Interface, host string) {
	state := ""
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		now := "up"
		err := client.Get().AbsPath("/livez").MaxRetries(0).Timeout(askTimeout).Do(ctx).Error()
		if err != nil && apierrors.ReasonForError(err) == metav1.StatusReasonUnknown {
			now = "down" // it has not answered
		}
		if now != state && ctx.Err() == nil {
			state = now
			l.see(model.Seen{Server: &model.Server{State: state, Host: host}})
		}
	}, askInterval)
}
