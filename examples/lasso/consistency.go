package main

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// maxStaleness is how long a sync waits for a cache, should etcd be restored to an older revision.
const maxStaleness = time.Minute

// lastWrites remembers, for each key, the resourceVersion that its last write to one resource got.
// A sync that reads an older cache would decide on a past that it changed itself.
type lastWrites struct{ byKey sync.Map }

type lastWrite struct {
	resourceVersion string
	at              time.Time
}

func (w *lastWrites) record(key, resourceVersion string) {
	w.byKey.Store(key, lastWrite{resourceVersion: resourceVersion, at: time.Now()})
}

// seen reports whether what was read at resourceVersion shows the last write on behalf of key.
func (w *lastWrites) seen(key, resourceVersion string) bool {
	value, ok := w.byKey.Load(key)
	if !ok {
		return true
	}
	write := value.(lastWrite)
	order, err := resourceversion.CompareResourceVersion(resourceVersion, write.resourceVersion)
	return err != nil || order >= 0 || time.Since(write.at) > maxStaleness
}

// wrote reports whether there was a write on behalf of key.
func (w *lastWrites) wrote(key string) bool {
	_, ok := w.byKey.Load(key)
	return ok
}

func (w *lastWrites) forget(key string) { w.byKey.Delete(key) }
