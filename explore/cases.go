package explore

import (
	"fmt"
	"hash/fnv"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// explore runs a test for each scenario, with what came of that when nothing disturbed it.
func (x *explorer) explore(name string, test func(*testing.T, *cases, *Scenario, *result)) {
	x.t.Run(name, func(t *testing.T) {
		c := &cases{what: map[string]int{}}
		for i := range x.controller.Scenarios {
			s := &x.controller.Scenarios[i]
			t.Run(s.Name, func(t *testing.T) {
				calm := x.calmly(t, s)
				c.add("scenarios", 1)
				test(t, c, s, calm)
			})
		}
		c.report(t)
	})
}

// fail fails the test if there are problems, and says how to run it alone.
func fail(t *testing.T, when string, problems []string) {
	t.Helper()
	if len(problems) == 0 {
		return
	}
	if found != nil {
		for _, problem := range problems {
			found(Finding{t.Name(), when, problem})
		}
		return
	}
	alone := "'^" + strings.ReplaceAll(t.Name(), "/", "$/^") + "$'"
	t.Errorf("%s:\n  %s\nalone: go test -explore.every -run %s", when,
		strings.Join(problems, "\n  "), alone)
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
