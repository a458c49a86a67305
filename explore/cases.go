package explore

import (
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// explore tries the faults of a kind in each scenario.
func (x *explorer) explore(k kind) {
	x.t.Run(k.name, func(t *testing.T) {
		c := &cases{what: map[string]int{}}
		for i := range x.controller.Scenarios {
			s := &x.controller.Scenarios[i]
			t.Run(s.Name, func(t *testing.T) {
				calm := x.calmly(t, s)
				c.add("scenarios", 1)
				c.add("requests", len(calm.requests))
				c.add("events", len(calm.events))
				x.each(t, c, k, s, nil, calm)
			})
		}
		c.report(t)
	})
}

// each tries each fault that a run of a scenario may have, after those that it has had already.
// With -explore.every, a second one follows in the short scenarios.
func (x *explorer) each(t *testing.T, c *cases, k kind, s *Scenario, first []fault, r *result) {
	for _, f := range k.faults(s, r, first) {
		faults := append(slices.Clip(first), f)
		c.run(t, f.name, len(first) == 0, func(t *testing.T) {
			got := x.try(t, s, faults)
			if len(got.hits) == 0 {
				c.miss(t)
			}
			if f.judge != nil {
				f.judge(got, x.calm[s.Name])
			}
			if !k.strict {
				got.unasked = c.split(got.unasked)
			}
			x.fail(t, s.Name, got)
			if *every && len(first) == 0 && f.again && s.short() {
				x.each(t, c, k, s, faults, got)
			}
		})
	}
}

// try runs a scenario in which faults happen.
func (x *explorer) try(t *testing.T, s *Scenario, faults []fault) *result {
	t.Helper()
	steps, last := s.steps(), faults[len(faults)-1]
	if last.steps != nil {
		steps = last.steps(steps)
	}
	return x.run(t, s, faults, func(w *World) {
		for _, step := range steps {
			w.play(step)
		}
		if w.down() {
			w.start()
		}
		time.Sleep(last.rest)
	})
}

// cases counts the cases of a test, and says how far it is.
type cases struct {
	what map[string]int
	last time.Time // when it said so
}

// add counts something, such as a scenario or a case.
func (c *cases) add(what string, n int) { c.what[what] += n }

// run runs a case as a subtest. If split is true, it must belong to the shard.
func (c *cases) run(t *testing.T, name string, split bool, test func(*testing.T)) {
	t.Helper()
	if split && !inShard(t.Name()+"/"+name) {
		return
	}
	c.add("cases", 1)
	if *every && time.Since(c.last) > 10*time.Second {
		c.last = time.Now()
		fmt.Fprintf(os.Stderr, "%s, now %s/%s\n", c, t.Name(), name)
	}
	t.Run(name, test)
}

// String returns the counts, such as "1200 cases, 300 requests, 30 scenarios".
func (c *cases) String() string {
	var text []string
	for _, what := range slices.Sorted(maps.Keys(c.what)) {
		text = append(text, fmt.Sprintf("%d %s", c.what[what], what))
	}
	return strings.Join(text, ", ")
}

const missed = "cases that did not come about"

// miss counts a case whose request or event was not there this time: when two things happen at the
// same time, their order may differ from run to run.
func (c *cases) miss(t *testing.T) {
	c.add(missed, 1)
	t.Skip("the request or the event was not there this time")
}

// report prints the counts when the test has ended. Nearly all cases must have come about: up to ten may be
// missing where there are few.
func (c *cases) report(t *testing.T) {
	if n := c.what[missed]; n > 10 && 10*n > c.what["cases"] {
		t.Errorf("too many cases did not come about: %s", c)
	}
	if *every {
		fmt.Fprintf(os.Stderr, "%s: %s\n", t.Name(), c)
	}
	t.Log(c)
}

// split returns the deletions among the writes that the newest state did not ask for, and counts
// the others.
func (c *cases) split(all []unasked) []unasked {
	return slices.DeleteFunc(all, func(u unasked) bool {
		if !u.deletion {
			c.add("creations and changes that came too late", 1)
		}
		return !u.deletion
	})
}

// inShard reports whether a case belongs to the shard.
func inShard(name string) bool {
	i, n := uint32(1), uint32(4)
	if *every {
		n = 1
	}
	if *shard != "" {
		_, err := fmt.Sscanf(*shard, "%d/%d", &i, &n)
		if err != nil || i < 1 || i > n {
			panic(fmt.Sprintf("-explore.shard=%s: want 1/4, for example", *shard))
		}
	}
	hash := fnv.New32a()
	hash.Write([]byte(name))
	return hash.Sum32()%n == i-1
}
