package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

const (
	// fooBucket has two keys for each Foo, so that nobody overwrites what the other has written: users
	// write spec.NAMESPACE.NAME, and the controller writes status.NAMESPACE.NAME.
	fooBucket = "foos"
	// In defaultBucket, spec.NAMESPACE.default has the replicas of a Foo that names no number.
	defaultBucket = "defaults"
	defaultName   = "default"
	// A ConfigMap of this name has them if that key does not: replicas, in the same namespace.
	defaultConfigMap = "foo-defaults"
	// statusRevision is an annotation of a Foo in memory: the revision of its status key.
	statusRevision = v1alpha1.GroupName + "/status-revision"
	listTimeout    = 30 * time.Second
)

// bucket is the part of a key-value bucket of JetStream that the controller uses.
type bucket interface {
	Get(ctx context.Context, key string) (jetstream.KeyValueEntry, error)
	Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error)
	Delete(ctx context.Context, key string, options ...jetstream.KVDeleteOpt) error
	Watch(ctx context.Context, keys string, o ...jetstream.WatchOpt) (jetstream.KeyWatcher, error)
}

// keyOf returns the key of a part of a Foo, "spec" or "status".
func keyOf(part string, f *v1alpha1.Foo) string { return part + "." + f.Namespace + "." + f.Name }

// isGone reports whether the bucket has no spec of foo: there is a delete marker, or only a status.
func isGone(foo *v1alpha1.Foo) bool { return foo.Generation == 0 || foo.DeletionTimestamp != nil }

// source shows a bucket to an informer as an API server shows a resource. The revision of an entry
// is the resourceVersion. A delete marker is a Foo with a deletionTimestamp, and not the absence of
// a Foo: see finalize.
type source struct {
	bucket bucket
	keys   string        // which of them it shows
	resync time.Duration // how long a watch lasts; then the informer lists the bucket again
	next   *feed         // what list has begun, and watch goes on with
}

func (s *source) informer() cache.SharedIndexInformer {
	return cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(
		&cache.ListWatch{ListWithContextFunc: s.list, WatchFuncWithContext: s.watch}, s),
		&v1alpha1.Foo{}, s.resync, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
}

// IsWatchListSemanticsUnSupported makes the informer call list before watch.
func (s *source) IsWatchListSemanticsUnSupported() bool { return true }

// list begins a watch of the bucket, and returns the newest entry of each key. A nil says that these
// were all. The rest of the watch is for the method watch.
func (s *source) list(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
	ctx, stop := context.WithTimeout(ctx, s.resync)
	defer time.AfterFunc(listTimeout, stop).Stop()
	watcher, err := s.bucket.Watch(ctx, s.keys)
	if err != nil {
		stop()
		return nil, fmt.Errorf("watching the bucket: %w", err)
	}
	f := &feed{stop, watcher, map[cache.ObjectName]*v1alpha1.Foo{}}
	list := &v1alpha1.FooList{}
	for entry := range watcher.Updates() {
		if entry != nil {
			list.ResourceVersion = f.apply(entry).ResourceVersion
			continue
		}
		for _, foo := range f.foos {
			list.Items = append(list.Items, *foo)
		}
		s.next = f
		return list, nil
	}
	stop()
	return nil, errors.New("the watch of the bucket ended before the whole bucket was read")
}

// watch goes on with the watch that list has begun. When that has ended, the informer must list
// again: from a revision of the past, a watch would not show a marker that was purged meanwhile.
func (s *source) watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	f := s.next
	if s.next = nil; f == nil {
		return nil, apierrors.NewResourceExpired("a watch of a bucket begins with a list")
	}
	return watch.NewStreamWatcher(f, nil), nil // no reporter: the only error is io.EOF
}

// feed makes Foos of the entries that a watch shows.
type feed struct {
	stop    context.CancelFunc
	watcher jetstream.KeyWatcher
	foos    map[cache.ObjectName]*v1alpha1.Foo
}

// Decode returns the next Foo that has changed.
func (f *feed) Decode() (watch.EventType, runtime.Object, error) {
	if entry, ok := <-f.watcher.Updates(); ok {
		return watch.Modified, f.apply(entry), nil // the informer knows what is new
	}
	return "", nil, io.EOF
}

// Close ends the watch. Somebody must read what it still sends, or its sender would wait for ever.
func (f *feed) Close() {
	f.stop()
	go func() {
		for range f.watcher.Updates() {
		}
	}()
}

// apply takes in an entry, and returns its Foo.
func (f *feed) apply(entry jetstream.KeyValueEntry) *v1alpha1.Foo {
	part := strings.SplitN(entry.Key(), ".", 3)
	key := cache.NewObjectName(part[1], part[2])
	foo := f.foos[key].DeepCopy() // the informer has the other one
	if foo == nil {
		foo = newFoo(key)
	}
	f.foos[key] = foo
	var value v1alpha1.Foo
	if json.Unmarshal(entry.Value(), &value) != nil {
		value = v1alpha1.Foo{} // a marker; or the API server will refuse a Deployment without a name
	}
	foo.ResourceVersion = strconv.FormatUint(entry.Revision(), 10)
	switch part[0] {
	case "status":
		foo.Status = value.Status
		metav1.SetMetaDataAnnotation(&foo.ObjectMeta, statusRevision, foo.ResourceVersion)
	case "spec":
		foo.Spec, foo.Generation, foo.DeletionTimestamp = value.Spec, int64(entry.Revision()), nil
		if entry.Operation() != jetstream.KeyValuePut {
			foo.DeletionTimestamp = new(metav1.NewTime(entry.Created()))
		}
	}
	return foo
}
