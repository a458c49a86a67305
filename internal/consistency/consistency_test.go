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
		"the store is older":                {"9", "10", false},
		"the store has it":                  {"10", "10", true},
		"the store is newer":                {"11", "10", true},
		"the store does not tell":           {"", "10", true},
		"the server's version is no number": {"9", "x", true},
	} {
		t.Run(name, func(t *testing.T) {
			writes := NewWrites(storeAt(test.store))
			writes.WroteAt(key, test.written)
			if got := writes.Seen(key); got != test.want {
				t.Errorf("seen: got %v, want %v", got, test.want)
			}
			if !writes.Seen(cache.NewObjectName("default", "another")) {
				t.Error("a key without a write waits")
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
			t.Error("seen after 59s")
		}
		time.Sleep(time.Second)
		if !writes.Seen(key) {
			t.Error("not given up after a minute")
		}
	})
}

func TestWriteIsRememberedUntilItsKeyIsCleared(t *testing.T) {
	writes := NewWrites(storeAt("10"))
	if writes.HasWritten(key) {
		t.Error("a write is remembered that never was")
	}
	writes.WroteAt(key, "10")
	if !writes.Seen(key) || !writes.HasWritten(key) {
		t.Error("the write is forgotten when the store shows it")
	}
	writes.WroteAt(key, "11")
	writes.Clear(key)
	if !writes.Seen(key) || writes.HasWritten(key) {
		t.Error("the write is remembered after its key is cleared")
	}
}
