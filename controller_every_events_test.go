package main

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// treatments are what happens to an event, by name. Only -every tries the rare ones.
var treatments = []struct {
	name  string
	treat treatment
	rare  bool
}{
	{"unseen", drop, true}, {"silence-from-here", lose, false}, {"late-from-here", hold, false},
	{"expired", expire, true},
}

// surprise is an event that does not come as it should.
type surprise struct {
	event string
	treat treatment
}

// TestEveryEvent disturbs each event of the watches in each scenario. Either the event is not
// shown, or nothing is from there on, and in the end the informer lists again. Or everything from
// there on is shown in the end only, so that one watch is behind the other. Or the watch breaks
// there.
func TestEveryEvent(t *testing.T) {
	inEveryScenario(t, func(t *testing.T, c *cases, s scenario, calm result) {
		c.add("events", len(calm.events))
		s.surprise(t, c, nil, calm.events)
	})
}

// surprise disturbs each of the events, after those that are disturbed already. With -every, there
// is a second surprise in the short scenarios.
func (s scenario) surprise(t *testing.T, c *cases, first []surprise, events []request) {
	for i, e := range events {
		for _, treatment := range treatments {
			if treatment.rare && !*every {
				continue
			}
			surprises := append(slices.Clip(first), surprise{e.String(), treatment.treat})
			c.run(t, fmt.Sprintf("%s/%s", e, treatment.name), len(first) == 0, func(t *testing.T) {
				got := s.disturbed(t, c, surprises)
				expectNone(t, fmt.Sprintf("after %v", surprises),
					append(got.problems, c.split(got.unasked)...))
				if *every && len(surprises) == 1 && len(s.steps) <= 3 {
					s.surprise(t, c, surprises, got.events[min(i+1, len(got.events)):])
				}
			})
		}
	}
}

// disturbed runs the scenario with these surprises.
func (s scenario) disturbed(t *testing.T, c *cases, surprises []surprise) result {
	t.Helper()
	var met atomic.Int32
	got := s.run(t, func(w *world) {
		w.onEvent = func(_ *instance, e request) treatment {
			for _, surprise := range surprises {
				if surprise.event == e.String() {
					met.Add(1)
					return surprise.treat
				}
			}
			return show
		}
	}, time.Minute)
	if met.Load() == 0 {
		c.miss(t)
	}
	return got
}
