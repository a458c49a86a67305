package explore

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// turn is a request or an event that waits, while everybody else goes on.
type turn struct {
	of    string // the request or the event
	place string // where a request waits: before it is made, or after it and before its answer
	wait  string // how long
}

// How long a turn waits.
const (
	// Meanwhile, everybody else does all that they can do at once.
	moment = "a-moment"
	// The controller also looks again at what it wrote.
	while = "a-while"
	// The users also take their next step, which does not wait for its time.
	aStep = "a-step"
	// The worker gives up, and goes on. But the request is under way, and arrives after the next step.
	tooLong = "too-long"
)

// wait returns how long a turn waits.
func (x *explorer) wait(name string) time.Duration {
	return map[string]time.Duration{
		moment: time.Millisecond, while: 2 * time.Second, aStep: 3 * time.Second,
		tooLong: x.controller.Delay + 2*time.Second,
	}[name]
}

// schedules varies the order in which workers, informers and users do things. Each request waits,
// before it is made or before its answer comes, and each event of an informer. Meanwhile all others
// go on: the other workers, the other informers and, if the wait is long enough, the users. Without
// -explore.every, it takes only the writes, and only the long waits.
func (x *explorer) schedules(t *testing.T, c *cases, s *Scenario, calm *result) {
	c.add("requests", len(calm.requests))
	c.add("events", len(calm.events))
	x.takeTurns(t, c, s, nil, calm)
}

// takeTurns lets each request and each event of a run wait, after the turns that wait already. With
// -explore.every, a second one waits in the short scenarios: a write or an event, and for long.
func (x *explorer) takeTurns(t *testing.T, c *cases, s *Scenario, first []turn, r *result) {
	t.Helper()
	for _, next := range turnsOf(r, len(first) > 0) {
		if slices.ContainsFunc(first, func(f turn) bool { return f.of == next.of }) {
			continue
		}
		turns := append(slices.Clip(first), next)
		name := strings.Join([]string{next.of, next.place, next.wait}, "/")
		c.run(t, name, len(first) == 0, func(t *testing.T) {
			got := x.scheduled(t, c, s, turns)
			fail(t, fmt.Sprintf("these wait: %v", turns), got.wrong(c.split(got.unasked)))
			if *every && len(turns) == 1 && next.wait != moment && s.short() {
				x.takeTurns(t, c, s, turns, got)
			}
		})
	}
}

// turnsOf returns the turns of a run. If few is true, these are only those without which
// -explore.every would take hours.
func turnsOf(r *result, few bool) (turns []turn) {
	few = few || !*every
	for _, request := range r.requests {
		of := request.String()
		if few && !request.write {
			continue
		}
		turns = append(turns, turn{of, before, aStep}, turn{of, after, aStep})
		if request.write || request.verb == "get" {
			turns = append(turns, turn{of, before, tooLong})
		}
		if !few {
			turns = append(turns, turn{of, before, moment}, turn{of, after, moment},
				turn{of, before, while}, turn{of, after, while})
		}
	}
	if !*every {
		return turns
	}
	for _, event := range r.events {
		of := event.String()
		turns = append(turns, turn{of, "event", aStep})
		if !few {
			turns = append(turns, turn{of, "event", moment}, turn{of, "event", while})
		}
	}
	return turns
}

// scheduled runs the scenario with these turns.
func (x *explorer) scheduled(t *testing.T, c *cases, s *Scenario, turns []turn) *result {
	t.Helper()
	var met atomic.Int32
	got := x.run(t, s, func(w *World) {
		w.disturb = func(_ *process, r Request, do func() error) error {
			for _, turn := range turns {
				if turn.of == r.String() {
					met.Add(1)
					return x.waitWith(w, turn, do)
				}
			}
			return do()
		}
		w.onEvent = func(_ *process, e Request) treatment {
			for _, turn := range turns {
				if turn.of == e.String() {
					met.Add(1)
					if turn.wait == aStep {
						w.hurryUp()
					}
					w.lateness = x.wait(turn.wait)
					return late
				}
			}
			return show
		}
	}, func(w *World) {
		w.play(s.steps())
		time.Sleep(time.Minute)
	})
	if met.Load() == 0 {
		c.miss(t)
	}
	if slices.ContainsFunc(turns, turn.mayDeleteTooLate) {
		got.unasked = slices.DeleteFunc(got.unasked, func(write string) bool {
			deletion := strings.HasPrefix(write, "delete-")
			if deletion {
				c.add("deletions that came too late", 1)
			}
			return deletion
		})
	}
	return got
}

// waitWith lets a request wait.
func (x *explorer) waitWith(w *World, turn turn, do func() error) error {
	if turn.wait == aStep {
		w.hurryUp()
	}
	switch {
	case turn.wait == tooLong:
		time.AfterFunc(x.wait(turn.wait), func() { _ = do() })
		time.Sleep(x.controller.Timeout)
		return &url.Error{Op: "Any", URL: "https://injected", Err: context.DeadlineExceeded}
	case turn.place == before:
		time.Sleep(x.wait(turn.wait))
		return do()
	}
	err := do()
	time.Sleep(x.wait(turn.wait))
	return err
}

// mayDeleteTooLate reports whether something may be deleted although the users have just asked for
// it again: the controller has asked before, and its deletion is under way. No controller can call
// that back, and no API server compares the owner when it deletes something.
func (t turn) mayDeleteTooLate() bool {
	verb, _, _ := strings.Cut(t.of, "-")
	return (verb == "get" || verb == "delete") && (t.wait == aStep || t.wait == tooLong)
}
