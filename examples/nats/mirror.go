package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/nats-io/nats.go/jetstream"

	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// rewatchDelay is how long to wait after a watch that failed.
const rewatchDelay = 200 * time.Millisecond

// errReplaced ends the process: the known revisions cannot be compared with those of a new bucket.
var errReplaced = errors.New("the bucket was deleted and made again; start the controller anew")

// record is what a bucket holds under one key: a Foo, or only the status of one.
type record struct {
	key      string
	revision uint64
	foo      v1alpha1.Foo
	err      error // why the value is no Foo; there is no CustomResourceDefinition to refuse it
}

// mirror is a copy of a bucket in memory, as an informer is one of a resource of the API server: it
// lists and watches, keeps an indexed store, and calls a function with the key of each change.
type mirror struct {
	bucket  jetstream.KeyValue
	store   string // the bucket's identity; see identity
	changed func(key string)
	listed  func() // called each time after a list of the whole bucket
	relist  chan struct{}

	synced   chan struct{} // closed after the first list
	syncOnce sync.Once

	mu      sync.Mutex // held while a revision is compared with the known one and replaces it
	records cache.Indexer
}

// newMirror returns a mirror of the bucket of that name. It creates the bucket if there is none.
func newMirror(ctx context.Context, js jetstream.JetStream, name string) (*mirror, error) {
	bucket, err := js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: name})
	if errors.Is(err, jetstream.ErrBucketExists) { // created by others, with other settings
		bucket, err = js.KeyValue(ctx, name)
	}
	if err != nil {
		return nil, fmt.Errorf("opening bucket %s: %w", name, err)
	}
	store, err := identity(ctx, bucket)
	return &mirror{
		bucket: bucket, store: store,
		changed: func(string) {}, listed: func() {},
		relist: make(chan struct{}, 1), synced: make(chan struct{}),
		records: cache.NewIndexer(
			func(object any) (string, error) { return object.(*record).key, nil },
			cache.Indexers{recordIndex: indexRecord}),
	}, err
}

// indexRecord indexes a record by its namespace, and by the Deployment that it names.
func indexRecord(object any) ([]string, error) {
	r := object.(*record)
	namespace, _, _ := strings.Cut(r.key, ".")
	return []string{namespace, keyOf(namespace, r.foo.Spec.DeploymentName)}, nil
}

// identity returns a name for bucket that changes if the bucket is deleted and created again, or is
// on another server: an empty bucket must not look like one whose Foos were deleted.
func identity(ctx context.Context, bucket jetstream.KeyValue) (string, error) {
	status, err := bucket.Status(ctx)
	if err != nil {
		return "", fmt.Errorf("reading the state of bucket %s: %w", bucket.Bucket(), err)
	}
	created := status.(*jetstream.KeyValueBucketStatus).StreamInfo().Created
	return fmt.Sprintf("%s@%d", bucket.Bucket(), created.UnixMilli()), nil
}

// get returns the record of key, or nil if there is none.
func (m *mirror) get(key string) *record {
	if object, exists, _ := m.records.GetByKey(key); exists {
		return object.(*record)
	}
	return nil
}

// find returns the keys of the records in a namespace. Given the keyOf of a Deployment, it returns
// the keys of the records that name this Deployment.
func (m *mirror) find(namespaceOrDeployment string) []string {
	keys, _ := m.records.IndexKeys(recordIndex, namespaceOrDeployment) // no error: the index exists
	return keys
}

// run keeps the copy up to date until ctx is done. It calls fail if the bucket was replaced.
func (m *mirror) run(ctx context.Context, fail context.CancelCauseFunc) {
	for ctx.Err() == nil {
		err := m.watch(ctx)
		if errors.Is(err, errReplaced) {
			fail(fmt.Errorf("bucket %s: %w", m.bucket.Bucket(), err))
			return
		}
		if err != nil {
			klog.FromContext(ctx).Info("Watching failed, will retry",
				"bucket", m.bucket.Bucket(), "err", err)
			select {
			case <-time.After(rewatchDelay):
			case <-ctx.Done():
			}
		}
	}
}

// watch reads everything in the bucket, and then every change, until ctx is done or listAnew is
// called. A known key that is no longer in the bucket was deleted while nobody watched.
func (m *mirror) watch(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	store, err := identity(ctx, m.bucket)
	if err != nil {
		return err
	}
	if store != m.store {
		return errReplaced
	}
	unseen := sets.New(m.records.ListKeys()...)
	watcher, err := m.bucket.WatchAll(ctx)
	if err != nil {
		return err
	}
	defer func() {
		_ = watcher.Stop()
		go func() {
			for range watcher.Updates() { // otherwise the sender may wait for ever
			}
		}()
	}()
	for {
		select {
		case entry, open := <-watcher.Updates():
			switch {
			case !open:
				return errors.New("the watch has ended")
			case entry == nil: // everything that was in the bucket at the beginning was read
				for key := range unseen {
					m.replace(key, math.MaxUint64, nil)
				}
				unseen = nil
				m.syncOnce.Do(func() { close(m.synced) })
				m.listed()
			default:
				unseen.Delete(entry.Key())
				m.apply(entry)
			}
		case <-m.relist:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// apply stores one entry. After a purge, the bucket keeps less of the past than after a deletion,
// but both mean the same: the Foo is gone.
func (m *mirror) apply(entry jetstream.KeyValueEntry) {
	if entry.Operation() == jetstream.KeyValuePut {
		m.put(entry.Key(), entry.Revision(), entry.Value())
	} else {
		m.replace(entry.Key(), entry.Revision(), nil)
	}
}

// put stores a value.
func (m *mirror) put(key string, revision uint64, value []byte) {
	r := &record{key: key, revision: revision}
	r.err = json.Unmarshal(value, &r.foo)
	m.replace(key, revision, r)
}

// replace replaces the record of key by r, or deletes it if r is nil, unless a newer revision is
// known: the process knows its own writes before the watch shows them.
func (m *mirror) replace(key string, revision uint64, r *record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.get(key)
	switch {
	case known != nil && known.revision >= revision, known == nil && r == nil:
		return
	case r == nil:
		_ = m.records.Delete(known) // no error: every record has a key
	default:
		_ = m.records.Add(r)
	}
	m.changed(key)
}

// listAnew makes the watch begin again.
func (m *mirror) listAnew() {
	select {
	case m.relist <- struct{}{}:
	default: // it is about to begin again
	}
}

// Name and Done let cache.WaitFor wait for the first list, as it waits for informers.
func (m *mirror) Name() string          { return m.bucket.Bucket() }
func (m *mirror) Done() <-chan struct{} { return m.synced }
