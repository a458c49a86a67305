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
	lost        = "Foos lost"
	duplicate   = "duplicate Deployments"
	orphaned    = "orphaned Deployments"
	untrue      = "untrue statuses"
	needless    = "needless writes"
	lateWrites  = "writes after quiescence"
	unexplained = "unexplained exits"
)

var findings = []string{lost, duplicate, orphaned, untrue, needless, lateWrites, unexplained}

func (c *totals) count(what string) { c.add(what, 1) }

func (c *totals) add(what string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[what] += n
}

// of returns a count.
func (c *totals) of(what string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts[what]
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
	for _, what := range findings {
		found[what] = done[what]
		delete(done, what)
	}
	return done, found
}

// String returns the summary: first what was done, then what was found.
func (c *totals) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	faults := 0
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d, took %v", *seed, time.Since(c.begin).Round(time.Second))
	for what, n := range c.counts {
		if strings.HasPrefix(what, faultPrefix) {
			faults += n
		}
	}
	fmt.Fprintf(&b, "\n%6d faults injected\ndone:", faults)
	for _, what := range slices.Sorted(maps.Keys(c.counts)) {
		if !slices.Contains(findings, what) {
			fmt.Fprintf(&b, "\n%6d %s", c.counts[what], what)
		}
	}
	b.WriteString("\nfound:")
	for _, what := range findings {
		fmt.Fprintf(&b, "\n%6d %s", c.counts[what], what)
	}
	return b.String()
}
