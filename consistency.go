package main

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
)

// maxStaleness is how long a sync waits for an informer to show a write. It is for the case that
// never comes, an etcd restored to an older revision; after it, the API server's own checks
// (AlreadyExists, Conflict) are all that guards a write.
const maxStaleness = time.Minute

// lastWrites remembers, for each key, the resourceVersion that its last write to one resource
// got. A sync that reads the cache before the informer of that resource has seen it would decide
// on a past that it changed itself.
type lastWrites struct {
	store cache.Store

	mu     sync.Mutex
	writes map[cache.ObjectName]lastWrite
}

type lastWrite struct {
	resourceVersion string
	at              time.Time
}

func newLastWrites(store cache.Store) *lastWrites {
	return &lastWrites{store: store, writes: map[cache.ObjectName]lastWrite{}}
}

// record notes that a write on behalf of key got resourceVersion.
func (w *lastWrites) record(key cache.ObjectName, resourceVersion string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes[key] = lastWrite{resourceVersion: resourceVersion, at: time.Now()}
}

// seen reports whether the store shows the last write on behalf of key, or there was none.
func (w *lastWrites) seen(key cache.ObjectName) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	write, ok := w.writes[key]
	if !ok || write.resourceVersion == "" {
		return true
	}
	order, err := resourceversion.CompareResourceVersion(
		w.store.LastStoreSyncResourceVersion(), write.resourceVersion)
	// An error means versions that cannot be compared: waiting would not help.
	if err == nil && order < 0 && time.Since(write.at) < maxStaleness {
		return false
	}
	w.writes[key] = lastWrite{} // seen, and that there was one stays known
	return true
}

// pending reports whether there was a write on behalf of key that no sync has seen yet.
func (w *lastWrites) pending(key cache.ObjectName) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writes[key].resourceVersion != ""
}

// wrote reports whether there was a write on behalf of key.
func (w *lastWrites) wrote(key cache.ObjectName) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, ok := w.writes[key]
	return ok
}

// forget drops what is known of key, whose object is gone.
func (w *lastWrites) forget(key cache.ObjectName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.writes, key)
}
