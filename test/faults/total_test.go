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

// faultPrefix begins the names of the proxy's faults.
const faultPrefix = "fault: "

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

// split returns what was done, with one count for all faults of the proxy, and what was found.
func (c *totals) split() (done, found map[string]int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	done, found = map[string]int{}, map[string]int{}
	for what, n := range c.counts {
		if strings.HasPrefix(what, faultPrefix) {
			what = "faults of the proxy"
		}
		done[what] += n
	}
	for _, what := range []string{wrong, needless, lateWrites, unexplained} {
		found[what] = done[what]
		delete(done, what)
	}
	return done, found
}

// String returns the summary: first what was done, then what was found.
func (c *totals) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d, took %v", *seed, time.Since(c.begin).Round(time.Second))
	done, found := c.split()
	for _, counts := range []map[string]int{done, found} {
		for _, what := range slices.Sorted(maps.Keys(counts)) {
			fmt.Fprintf(&b, "\n%6d %s", counts[what], what)
		}
	}
	return b.String()
}
