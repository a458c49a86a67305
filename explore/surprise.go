package explore

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// treatments are what happens to an event, by name. Only -explore.every tries the rare ones.
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

// surprises disturbs each event of the watches in a scenario. Either the event is not shown, or
// nothing is from there on, and in the end the informer lists again. Or everything from there on is
// shown in the end only, so that one watch is behind the other. Or the watch breaks there.
func (x *explorer) surprises(t *testing.T, c *cases, s *Scenario, calm *result) {
	c.add("events", len(calm.events))
	x.surprise(t, c, s, nil, calm.events)
}

// surprise disturbs each of the events, after those that are disturbed already. With
// -explore.every, there is a second surprise in the short scenarios.
func (x *explorer) surprise(
	t *testing.T, c *cases, s *Scenario, first []surprise, events []Request,
) {
	for i, e := range events {
		for _, treatment := range treatments {
			if treatment.rare && !*every {
				continue
			}
			surprises := append(slices.Clip(first), surprise{e.String(), treatment.treat})
			c.run(t, fmt.Sprintf("%s/%s", e, treatment.name), len(first) == 0, func(t *testing.T) {
				got := x.surprised(t, c, s, surprises)
				fail(t, fmt.Sprintf("the event %s is %s", e, treatment.name),
					got.wrong(c.split(got.unasked)))
				if *every && len(surprises) == 1 && s.short() {
					x.surprise(t, c, s, surprises, got.events[min(i+1, len(got.events)):])
				}
			})
		}
	}
}

// surprised runs the scenario with these surprises.
func (x *explorer) surprised(
	t *testing.T, c *cases, s *Scenario, surprises []surprise,
) *result {
	t.Helper()
	var met atomic.Int32
	got := x.run(t, s, func(w *World) {
		w.onEvent = func(_ *process, e Request) treatment {
			for _, surprise := range surprises {
				if surprise.event == e.String() {
					met.Add(1)
					return surprise.treat
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
	return got
}
