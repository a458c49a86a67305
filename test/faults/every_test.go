package faults

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	every = flag.Bool("every", false, "in the tests of every fault, run all cases; takes minutes")
	shard = flag.String("shard", "1/1",
		"with -every: which part of the scenarios to run, and of how many")
)

// crash is the death of a process at a request.
type crash struct {
	request string
	place   string
}

// The places of a crash.
const (
	before = "before" // the request is passed on
	after  = "after"  // the API server has done it, and before the process gets the answer
)

// attempts is how often a case is tried whose request does not come.
const attempts = 5

// What TestEveryCrash counts.
const (
	crashScenarios = "crashes: scenarios"
	crashRequests  = "crashes: requests in them"
	crashCases     = "crashes: cases"
	crashMissed    = "crashes: cases that did not come about"
)

// TestEveryCrash lets the controller die once at each request of each scenario, and starts a new
// one at once. That must find what is to be done, and nothing may be created or deleted twice. It
// is the test of that name in the root's folder, with a real API server and real processes.
// Without -every, it takes only the writes of a few scenarios.
//
// Behaviour 20.
func TestEveryCrash(t *testing.T) {
	t.Parallel()
	installPolicies(t)
	t.Cleanup(func() {
		missed, all := total.of(crashMissed), total.of(crashCases)
		if missed > max(2, all/20) {
			t.Errorf("too many cases did not come about: %d of %d", missed, all)
		}
	})
	for i, s := range scenarios {
		if *every && !inShard(i) || !*every && !s.quick {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.dieAtEach(t)
		})
	}
}

// dieAtEach runs a scenario undisturbed, and then lets the controller die at each of the requests.
func (s scenario) dieAtEach(t *testing.T) {
	sayHowToRunAlone(t)
	calm := s.play(t, crash{})
	calm.expectAtMost(calm.reasonsToCreate, calm.reasonsToDelete, "had reason for")
	t.Logf("undisturbed: %v", calm.requests)
	total.count(crashScenarios)
	total.add(crashRequests, len(calm.requests))
	if t.Failed() {
		return // so would all that follows
	}
	for _, r := range calm.requests {
		for _, place := range []string{before, after} {
			if *every || r.isWrite() {
				t.Run(fmt.Sprintf("%s/%s", r, place), func(t *testing.T) {
					t.Parallel()
					s.dieAt(t, crash{r.String(), place}, calm)
				})
			}
		}
	}
}

// dieAt lets the controller die in a play of its own, and compares that with the calm one.
func (s scenario) dieAt(t *testing.T, c crash, calm *play) {
	sayHowToRunAlone(t)
	total.count(crashCases)
	progress.tell(t.Name())
	for range attempts {
		p := s.play(t, c)
		p.expectAtMost(calm.created, calm.deleted, "needs without a crash")
		if p.crashed || t.Failed() {
			return
		}
	}
	total.count(crashMissed)
	t.Skip("the request did not come")
}

func sayHowToRunAlone(t *testing.T) {
	t.Cleanup(func() {
		if t.Failed() {
			alone := "'^" + strings.ReplaceAll(t.Name(), "/", "$/^") + "$'"
			t.Logf("alone: go -C test/faults test -every -run %s", alone)
		}
	})
}

// inShard reports whether the scenario of that number belongs to the shard.
func inShard(number int) bool {
	var i, n int
	if _, err := fmt.Sscanf(*shard, "%d/%d", &i, &n); err != nil || i < 1 || i > n {
		panic(fmt.Sprintf("-shard=%s: want 1/4, for example", *shard))
	}
	return number%n == i-1
}

// progress says with -every how far TestEveryCrash is.
var progress teller

type teller struct {
	mu   sync.Mutex
	last time.Time
}

// tell prints the counts, but not more often than every ten seconds.
func (p *teller) tell(now string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !*every || time.Since(p.last) < 10*time.Second {
		return
	}
	p.last = time.Now()
	fmt.Fprintf(os.Stderr, "%d scenarios, %d requests, %d cases begun, now %s\n",
		total.of(crashScenarios), total.of(crashRequests), total.of(crashCases), now)
}
