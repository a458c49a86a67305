package main

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// crash is the death of a process at a request.
type crash struct {
	request string
	place   string
}

// The places of a crash. If the process dies when it has the answer, but has done nothing more,
// that looks the same from outside as if it dies before the answer: what it knew is lost.
const (
	before = "before" // the request is made
	after  = "after"  // the request, and before the answer
)

// TestEveryCrash lets the process die at each request of each scenario. A new process must find
// what is to be done, and nothing may be created or deleted twice. Without -every, it takes only
// the writes: after another request, the objects are the same as before it.
func TestEveryCrash(t *testing.T) {
	inEveryScenario(t, func(t *testing.T, c *cases, s scenario, calm result) {
		c.add("requests", len(calm.requests))
		for _, late := range []bool{false, true} {
			s.crash(t, c, calm, nil, calm.requests, late)
		}
	})
}

// crash lets the process die at each of the requests, after the crashes that have happened. If late
// is true, a new process starts only after the next step. Otherwise, it starts at once. With
// -every, there is a second crash in the short scenarios.
func (s scenario) crash(
	t *testing.T, c *cases, calm result, first []crash, requests []request, late bool,
) {
	for _, r := range requests {
		if !*every && !r.isWrite() {
			continue
		}
		for _, place := range []string{before, after} {
			name := fmt.Sprintf("%s/%s", r, place)
			if late {
				name += "-for-longer"
			}
			crashes := append(slices.Clip(first), crash{r.String(), place})
			c.run(t, name, len(first) == 0, func(t *testing.T) {
				got := s.dieAt(t, c, crashes, late)
				problems := append(got.problems, got.unasked...)
				if got.created > calm.created || got.deleted > calm.deleted {
					problems = append(problems, fmt.Sprintf("Deployments created and deleted: got %d and %d, "+
						"want %d and %d", got.created, got.deleted, calm.created, calm.deleted))
				}
				expectNone(t, fmt.Sprintf("after %v", crashes), problems)
				if *every && len(crashes) == 1 && !late && len(s.steps) <= 3 {
					next := slices.DeleteFunc(got.requests, func(next request) bool {
						return next.process <= r.process
					})
					s.crash(t, c, calm, crashes, next, late)
				}
			})
		}
	}
}

// dieAt runs the scenario with these crashes.
func (s scenario) dieAt(t *testing.T, c *cases, crashes []crash, late bool) result {
	t.Helper()
	var died atomic.Int32
	got := s.run(t, func(w *world) {
		w.disturb = func(p *instance, r request, do func() error) error {
			for _, crash := range crashes {
				if crash.request != r.String() {
					continue
				}
				if crash.place == after {
					_ = do()
				}
				died.Add(1)
				w.kill(p, late)
				if !late {
					time.AfterFunc(time.Millisecond, w.start)
				}
				return errDead
			}
			return do()
		}
	}, 0)
	if died.Load() == 0 {
		c.miss(t)
	}
	return got
}
