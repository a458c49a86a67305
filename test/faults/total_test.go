package faults

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// total counts everything that is done and found, for the summary.
var total = totals{begin: time.Now(), counts: map[string]int{}}

type totals struct {
	begin time.Time

	mu     sync.Mutex
	counts map[string]int
}

// The findings. Each must be 0.
const (
	wrong       = "problems when it was quiet"
	needless    = "needless writes"
	lateWrites  = "writes after quiescence"
	unexplained = "unexplained exits"
)

func (c *totals) count(what string) { c.add(what, 1) }

func (c *totals) add(what string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[what] += n
}

// String returns the summary: first what was done, then what was found.
func (c *totals) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d, took %v", *seed, time.Since(c.begin).Round(time.Second))
	found := []string{wrong, needless, lateWrites, unexplained}
	done := slices.DeleteFunc(slices.Sorted(maps.Keys(c.counts)), func(what string) bool {
		return slices.Contains(found, what)
	})
	for _, what := range append(done, found...) {
		fmt.Fprintf(&b, "\n%6d %s", c.counts[what], what)
	}
	return b.String()
}
