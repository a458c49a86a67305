package main

import (
	"flag"
	"fmt"
	"hash/fnv"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	every = flag.Bool("every", false, "in the tests of every fault, run all cases, and say how far "+
		"they are; takes minutes")
	shard = flag.String("shard", "1/1", "with -every: which part of the cases to run, and of how many")
)

// pause is the time between two steps of a scenario: longer than blockedRetryDelay, so that the
// controller has done what it can.
const pause = 20 * time.Second

// idle returns how long the controller must not write when everything is quiet. Each delay of its
// own is shorter than ten minutes, and an hour takes much longer to simulate.
func idle() time.Duration {
	if *every {
		return time.Hour
	}
	return 10 * time.Minute
}

// result is what came of a scenario.
type result struct {
	requests, events  []request // until the disturbance ended
	created, deleted  int
	ends              []string // why processes have ended by themselves
	unasked, problems []string
	repaired          bool // a new process has no problems any more
}

// run runs a scenario in a world that prepare has set up. Its disturbance lasts for some time after
// the last step.
func (s scenario) run(t *testing.T, prepare func(*world), more time.Duration) (r result) {
	t.Helper()
	bubble(t, func(_ *testing.T, h *harness) {
		w := newWorld(h)
		if prepare != nil {
			prepare(w)
		}
		w.start()
		w.play(s.untilRolledOut())
		time.Sleep(more)
		w.mu.Lock()
		r.requests, r.events = slices.Clone(w.requests), slices.Clone(w.events)
		w.mu.Unlock()
		w.settle()
		r.problems = w.problems(idle())
		w.mu.Lock()
		r.created, r.deleted, r.ends, r.unasked = w.created, w.deleted, w.ends, w.unasked
		w.mu.Unlock()
		if len(r.problems) > 0 {
			w.restart()
			w.settle()
			r.repaired = len(w.problems(idle())) == 0
		}
	})
	return r
}

// untilRolledOut returns the steps of a scenario, and then those of Kubernetes' controllers.
func (s scenario) untilRolledOut() []step {
	return slices.Concat(s.steps, []step{collect, rollOut})
}

// play lets the steps happen. A process that was killed for longer starts again after the next one.
func (w *world) play(steps []step) {
	for _, s := range steps {
		time.Sleep(time.Millisecond) // nobody does two things in the same instant
		actions[s.action](w, s)
		if w.down() {
			w.start()
		}
		select {
		case <-time.After(pause):
		case <-w.hurry:
		}
	}
	if w.down() {
		w.start()
	}
}

// hurryUp lets the users take their next step now.
func (w *world) hurryUp() {
	select {
	case w.hurry <- struct{}{}:
	default:
	}
}

// inEveryScenario runs a test in each scenario, with what came of that when nothing disturbed it.
func inEveryScenario(t *testing.T, test func(*testing.T, *cases, scenario, result)) {
	t.Helper()
	skipIfShort(t)
	var c cases
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			calm := s.calm(t)
			c.add("scenarios", 1)
			test(t, &c, s, calm)
		})
	}
	c.report(t)
}

// skipIfShort skips a test of every fault if somebody wants quick answers.
func skipIfShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("the tests of every fault take half a minute together")
	}
}

// calm runs a scenario that nothing disturbs.
func (s scenario) calm(t *testing.T) result {
	t.Helper()
	r := s.run(t, nil, 0)
	expectNone(t, "undisturbed", append(r.problems, r.unasked...))
	return r
}

// expectNone fails the test if there are problems, and says how to run it alone.
func expectNone(t *testing.T, when string, problems []string) {
	t.Helper()
	if len(problems) == 0 {
		return
	}
	alone := "'^" + strings.ReplaceAll(t.Name(), "/", "$/^") + "$'"
	t.Errorf("%s:\n  %s\nalone: go test . -every -run %s", when, strings.Join(problems, "\n  "), alone)
}

// split returns the deletions among the writes that the newest state did not ask for, and counts
// the others. A deletion is never right. But no controller can know that what it creates or changes
// is no longer asked for.
func (c *cases) split(unasked []string) (deletions []string) {
	for _, write := range unasked {
		if strings.HasPrefix(write, "delete-") {
			deletions = append(deletions, write)
		} else {
			c.add("creations and changes that came too late", 1)
		}
	}
	return deletions
}

// cases counts the cases of a test, and says how far it is.
type cases struct {
	mu    sync.Mutex
	what  map[string]int
	order []string
	last  time.Time
}

// add counts something, such as a scenario or a case.
func (c *cases) add(what string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.what == nil {
		c.what, c.last = map[string]int{}, time.Now()
	}
	if _, ok := c.what[what]; !ok {
		c.order = append(c.order, what)
	}
	c.what[what] += n
}

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

// String returns the counts, such as "30 scenarios, 300 requests, 1200 cases".
func (c *cases) String() string {
	var text []string
	for _, what := range c.order {
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

// report prints the counts when the test has ended. Nearly all cases must have come about.
func (c *cases) report(t *testing.T) {
	if 20*c.what[missed] > c.what["cases"] {
		t.Errorf("too many cases did not come about: %s", c)
	}
	if *every {
		fmt.Fprintf(os.Stderr, "%s: %s\n", t.Name(), c)
	}
	t.Log(c)
}

// inShard reports whether a case belongs to the shard.
func inShard(name string) bool {
	var i, n uint32
	if _, err := fmt.Sscanf(*shard, "%d/%d", &i, &n); err != nil || i < 1 || i > n {
		panic(fmt.Sprintf("-shard=%s: want 1/4, for example", *shard))
	}
	hash := fnv.New32a()
	hash.Write([]byte(name))
	return hash.Sum32()%n == i-1
}
