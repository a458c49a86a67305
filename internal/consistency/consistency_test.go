package consistency

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/cache"
)

var key = cache.NewObjectName("default", "example")

func storeAt(version string) cache.Store {
	return &cache.FakeCustomStore{LastStoreSyncResourceVersionFunc: func() string { return version }}
}

func TestWriteIsSeenWhenTheStoreHasItsVersion(t *testing.T) {
	for name, test := range map[string]struct {
		store, written string
		want           bool
	}{
		"the store is older":               {"9", "10", false},
		"the store has this version":       {"10", "10", true},
		"the store is newer":               {"11", "10", true},
		"the store has no version":         {"", "10", true},
		"the written version is no number": {"9", "x", true},
		"the answer is AlreadyExists":      {"9", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			writes := NewWrites(storeAt(test.store))
			writes.WroteAt(key, test.written)
			if got := writes.Seen(key); got != test.want {
				t.Errorf("Seen: got %v, want %v", got, test.want)
			}
			if !writes.Seen(cache.NewObjectName("default", "another")) {
				t.Error("Seen of a key without a write: got false, want true")
			}
		})
	}
}

func TestStoreThatNeverCatchesUpDoesNotBlockForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		writes := NewWrites(storeAt("1"))
		writes.WroteAt(key, "10")
		time.Sleep(59 * time.Second)
		if writes.Seen(key) {
			t.Error("Seen after 59s: got true, want false")
		}
		time.Sleep(time.Second)
		if !writes.Seen(key) {
			t.Error("Seen after a minute: got false, want true")
		}
	})
}

func TestWriteIsRememberedUntilItsKeyIsCleared(t *testing.T) {
	writes := NewWrites(storeAt("10"))
	if writes.HasWritten(key) {
		t.Error("HasWritten before any write: got true, want false")
	}
	writes.WroteAt(key, "10")
	if !writes.Seen(key) || !writes.HasWritten(key) {
		t.Error("the store shows the write: want both Seen and HasWritten to be true")
	}
	writes.WroteAt(key, "11")
	writes.Clear(key)
	if !writes.Seen(key) || writes.HasWritten(key) {
		t.Error("the write is still remembered after Clear")
	}
}
