package main

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/cache"
)

func storeAt(version string) cache.Store {
	return &cache.FakeCustomStore{LastStoreSyncResourceVersionFunc: func() string { return version }}
}

func TestWriteIsSeenWhenTheStoreHasItsVersion(t *testing.T) {
	key := cache.NewObjectName("default", "example-foo")
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
			writes := newLastWrites(storeAt(test.store))
			writes.record(key, test.written)
			if got := writes.seen(key); got != test.want {
				t.Errorf("seen: got %v, want %v", got, test.want)
			}
			if !writes.seen(cache.NewObjectName("default", "another")) {
				t.Error("a key without a write waits")
			}
		})
	}
}

func TestStoreThatNeverCatchesUpDoesNotBlockForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key := cache.NewObjectName("default", "example-foo")
		writes := newLastWrites(storeAt("1"))
		writes.record(key, "10")
		time.Sleep(59 * time.Second)
		if writes.seen(key) {
			t.Error("seen after 59s")
		}
		time.Sleep(time.Second)
		if !writes.seen(key) {
			t.Error("not given up after a minute")
		}
	})
}
