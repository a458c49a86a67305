package freeport

import (
	"runtime"
	"testing"
)

// Of 300 random ports of 10,000, some would be the same in 99 of 100 cases.
func TestNobodyGetsAnAddressTwice(t *testing.T) {
	got := map[string]bool{}
	for range 300 {
		address := Address(t)
		if got[address] {
			t.Fatalf("got %s twice", address)
		}
		got[address] = true
		if len(got)%50 == 0 {
			runtime.GC() // closes what nothing refers to
		}
	}
}
