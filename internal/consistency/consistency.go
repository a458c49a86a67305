// Package consistency keeps a controller from acting on a state that it has already changed. An
// informer shows a write some time after the API server has accepted it. A sync that reads the
// cache in between would repeat the write.
//
// Kubernetes' own controllers use k8s.io/kubernetes/pkg/controller/util/consistency. Kubernetes does
// not support that module as a library. The names WroteAt and Clear are from there.
package consistency

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
)

// maxStaleness is how long a sync waits for an informer to show a write. If etcd was restored to an
// older revision, the informer may never show it. After this time, only the API server's own checks
// (AlreadyExists, Conflict) guard a write.
const maxStaleness = time.Minute

// Writes remembers the writes of a controller to one resource, on behalf of each key. Several
// goroutines may use it at the same time.
type Writes struct {
	store cache.Store

	mu      sync.Mutex
	pending map[cache.ObjectName]write // the last write of each key, until the store shows it
	written sets.Set[cache.ObjectName] // the keys with a write
}

type write struct {
	resourceVersion string
	at              time.Time
}

// NewWrites returns a record of the writes to the resource whose informer fills store.
func NewWrites(store cache.Store) *Writes {
	return &Writes{
		store:   store,
		pending: map[cache.ObjectName]write{},
		written: sets.New[cache.ObjectName](),
	}
}

// WroteAt records a write on behalf of key, and its resourceVersion, "" if AlreadyExists came.
func (w *Writes) WroteAt(key cache.ObjectName, resourceVersion string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pending[key] = write{resourceVersion: resourceVersion, at: time.Now()}
	w.written.Insert(key)
}

// Seen reports whether the store shows the last write on behalf of key. It also returns true if
// there was none, or if it is older than maxStaleness.
func (w *Writes) Seen(key cache.ObjectName) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	last, ok := w.pending[key]
	if !ok {
		return true
	}
	order, err := resourceversion.CompareResourceVersion(
		w.store.LastStoreSyncResourceVersion(), last.resourceVersion)
	// An error means that the versions cannot be compared: waiting would not help.
	if err == nil && order < 0 && time.Since(last.at) < maxStaleness {
		return false
	}
	delete(w.pending, key)
	return true
}

// Pending reports whether there is a write on behalf of key that Seen has not found in the store.
func (w *Writes) Pending(key cache.ObjectName) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, ok := w.pending[key]
	return ok
}

// HasWritten reports whether WroteAt was called on behalf of key, unless Clear has forgotten it.
func (w *Writes) HasWritten(key cache.ObjectName) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.written.Has(key)
}

// Clear forgets the writes on behalf of key, when its object is gone.
func (w *Writes) Clear(key cache.ObjectName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.pending, key)
	w.written.Delete(key)
}
