package main

import (
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/sample-controller/examples/internal/meaning"
	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

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
