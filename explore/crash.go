package explore

import (
	"fmt"
	"slices"
	"strings"
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

// short says that a scenario is short enough for two faults.
func (s *Scenario) short() bool { return len(s.Steps) <= 3 }

// crashes lets the process die at each request of a scenario. A new process must find what is to be
// done, and nothing may be created or deleted twice. Without -explore.every, it takes only the
// writes: after another request, the objects are the same as before it.
func (x *explorer) crashes(t *testing.T, c *cases, s *Scenario, calm *result) {
	c.add("requests", len(calm.requests))
	for _, late := range []bool{false, true} {
		x.crash(t, c, s, calm, nil, calm.requests, late)
	}
}

// crash lets the process die at each of the requests, after the crashes that have happened. If late
// is true, a new process starts only after the next step. Otherwise, it starts at once. With
// -explore.every, there is a second crash in the short scenarios.
func (x *explorer) crash(
	t *testing.T, c *cases, s *Scenario, calm *result, first []crash, requests []Request, late bool,
) {
	for _, r := range requests {
		if !*every && !r.write {
			continue
		}
		for _, place := range []string{before, after} {
			name := fmt.Sprintf("%s/%s", r, place)
			if late {
				name += "-for-longer"
			}
			crashes := append(slices.Clip(first), crash{r.String(), place})
			c.run(t, name, len(first) == 0, func(t *testing.T) {
				got := x.dieAt(t, c, s, crashes, late)
				problems := append(got.wrong(got.unasked), more(got, calm)...)
				fail(t, fmt.Sprintf("the process dies %s", describeCrashes(crashes)), problems)
				if *every && len(crashes) == 1 && !late && s.short() {
					next := slices.DeleteFunc(got.requests, func(next Request) bool {
						return next.Process <= r.Process
					})
					x.crash(t, c, s, calm, crashes, next, late)
				}
			})
		}
	}
}

func describeCrashes(crashes []crash) string {
	var text []string
	for _, c := range crashes {
		text = append(text, c.place+" "+c.request)
	}
	return strings.Join(text, ", and ")
}

// more returns what was created or deleted more often than in the undisturbed run.
func more(got, calm *result) (problems []string) {
	for resource, n := range got.written {
		want := calm.written[resource]
		if n.created > want.created || n.deleted > want.deleted {
			problems = append(problems, fmt.Sprintf("%s created and deleted: got %d and %d, want %d and %d",
				resource.Resource, n.created, n.deleted, want.created, want.deleted))
		}
	}
	return problems
}

// dieAt runs the scenario with these crashes.
func (x *explorer) dieAt(
	t *testing.T, c *cases, s *Scenario, crashes []crash, late bool,
) *result {
	t.Helper()
	var died atomic.Int32
	got := x.run(t, s, func(w *World) {
		w.disturb = func(p *process, r Request, do func() error) error {
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
	}, func(w *World) { w.play(s.steps()) })
	if died.Load() == 0 {
		c.miss(t)
	}
	return got
}
