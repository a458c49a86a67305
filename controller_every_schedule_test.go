package main

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
	wait  delay
}

// delay is how long a turn waits.
type delay struct {
	name string
	time time.Duration
}

var (
	// Meanwhile, everybody else does all that they can do at once.
	moment = delay{"a-moment", time.Millisecond}
	// The controller also looks again at what it wrote.
	while = delay{"a-while", 2 * staleRetryDelay}
	// The users also take their next step, which does not wait for its time.
	aStep = delay{"a-step", 3 * staleRetryDelay}
	// The worker gives up, and goes on. But the request is under way, and arrives after the next step.
	tooLong = delay{"too-long", pause + while.time}
)

// TestEverySchedule varies the order in which two workers, two informers and the users do things.
// Each request of a worker waits, before it is made or before its answer comes, and each event of
// an informer. Meanwhile all others go on: the other worker, the other informer and, if the wait is
// long enough, the users. Without -every, it takes only the writes, and only the long waits.
func TestEverySchedule(t *testing.T) {
	inEveryScenario(t, func(t *testing.T, c *cases, s scenario, calm result) {
		c.add("requests", len(calm.requests))
		c.add("events", len(calm.events))
		s.takeTurns(t, c, nil, calm)
	})
}

// takeTurns lets each request and each event of a run wait, after the turns that wait already. With
// -every, a second one waits in the short scenarios: a write or an event, and for long.
func (s scenario) takeTurns(t *testing.T, c *cases, first []turn, r result) {
	t.Helper()
	for _, next := range turnsOf(r, len(first) > 0) {
		if slices.ContainsFunc(first, func(f turn) bool { return f.of == next.of }) {
			continue
		}
		turns := append(slices.Clip(first), next)
		name := strings.Join([]string{next.of, next.place, next.wait.name}, "/")
		c.run(t, name, len(first) == 0, func(t *testing.T) {
			got := s.scheduled(t, c, turns)
			expectNone(t, fmt.Sprintf("after %v", turns), append(got.problems, c.split(got.unasked)...))
			if *every && len(turns) == 1 && next.wait != moment && len(s.steps) <= 3 {
				s.takeTurns(t, c, turns, got)
			}
		})
	}
}

// turnsOf returns the turns of a run. If few is true, these are only those without which -every
// would take hours.
func turnsOf(r result, few bool) (turns []turn) {
	few = few || !*every
	for _, request := range r.requests {
		of := request.String()
		if few && !request.isWrite() {
			continue
		}
		turns = append(turns, turn{of, before, aStep}, turn{of, after, aStep})
		if request.isWrite() || strings.HasPrefix(request.kind, "get-") {
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
func (s scenario) scheduled(t *testing.T, c *cases, turns []turn) result {
	t.Helper()
	var met atomic.Int32
	got := s.run(t, func(w *world) {
		w.disturb = func(_ *instance, r request, do func() error) error {
			for _, turn := range turns {
				if turn.of == r.String() {
					met.Add(1)
					return w.waitWith(turn, do)
				}
			}
			return do()
		}
		w.onEvent = func(_ *instance, e request) treatment {
			for _, turn := range turns {
				if turn.of == e.String() {
					met.Add(1)
					if turn.wait == aStep {
						w.hurryUp()
					}
					w.lateness = turn.wait.time
					return late
				}
			}
			return show
		}
	}, time.Minute)
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
func (w *world) waitWith(turn turn, do func() error) error {
	if turn.wait == aStep {
		w.hurryUp()
	}
	switch {
	case turn.wait == tooLong:
		time.AfterFunc(turn.wait.time, func() { _ = do() })
		time.Sleep(syncTimeout)
		return &url.Error{Op: "Any", URL: "https://injected", Err: context.DeadlineExceeded}
	case turn.place == before:
		time.Sleep(turn.wait.time)
		return do()
	}
	err := do()
	time.Sleep(turn.wait.time)
	return err
}

// mayDeleteTooLate reports whether a Deployment may be deleted although the users have just asked
// for it again: the controller has asked before, and its deletion is under way. No controller can
// call that back, and no API server compares the Foo when it deletes a Deployment.
func (t turn) mayDeleteTooLate() bool {
	verb, _, _ := strings.Cut(t.of, "-")
	return (verb == "get" || verb == "delete") && (t.wait == aStep || t.wait == tooLong)
}
