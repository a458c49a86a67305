package explore

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// moves returns the steps that a history may have.
func (x *explorer) moves() []Step {
	all := slices.Clone(x.controller.Moves)
	for i := range x.controller.Scenarios {
		all = append(all, x.controller.Scenarios[i].steps()...)
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(s Step) bool {
		twice := seen[s.Name]
		seen[s.Name] = true
		return twice
	})
}

// beginnings returns the scenarios with which histories begin.
func (x *explorer) beginnings() []*Scenario {
	all := []*Scenario{{Name: "nothing"}}
	for i := range x.controller.Scenarios {
		if s := x.controller.Scenarios[i]; s.Begins > 0 {
			all = append(all, &Scenario{Name: s.Name, Steps: s.Steps[:s.Begins]})
		}
	}
	return all
}

// histories tries all histories of up to -explore.depth steps, in a hurry and with pauses. It goes
// on only from states that it has not seen: a state is what the API server has, and what is
// disturbed.
func (x *explorer) histories() {
	x.t.Run("History", func(t *testing.T) {
		c := &cases{what: map[string]int{}}
		for _, s := range x.beginnings() {
			for _, pause := range []time.Duration{time.Millisecond, x.controller.Delay} {
				t.Run(fmt.Sprintf("%s/%v", s.Name, pause), func(t *testing.T) {
					seen := map[string]bool{}
					histories := [][]Step{nil}
					for i := range *depth {
						histories = x.tryAll(t, c, s.Steps, histories, pause, i == *depth-1, seen)
					}
					c.add("states", len(seen))
				})
			}
		}
		c.report(t)
	})
}

// tryAll tries each history with one more step, and returns those that led to new states. Only the
// last step is divided among the shards: what comes before leads to it.
func (x *explorer) tryAll(
	t *testing.T, c *cases, begin []Step, histories [][]Step, pause time.Duration, last bool,
	seen map[string]bool,
) (longer [][]Step) {
	for _, history := range histories {
		for _, move := range x.moves() {
			history := append(slices.Clip(history), move)
			name := strings.NewReplacer(" ", "-", "/", ".").Replace(nameOf(history, ", "))
			c.run(t, name, last, func(t *testing.T) {
				end, problems := x.try(t, begin, history, pause)
				fail(t, "after "+nameOf(history, ", "), problems)
				if !seen[end] {
					seen[end] = true
					longer = append(longer, history)
				}
			})
		}
	}
	return longer
}

func nameOf(history []Step, separator string) string {
	var names []string
	for _, s := range history {
		names = append(names, s.Name)
	}
	return strings.Join(names, separator)
}

// try runs a history, and returns the state after it, and what is wrong when everything is quiet.
func (x *explorer) try(
	t *testing.T, begin, history []Step, pause time.Duration,
) (end string, problems []string) {
	t.Helper()
	s := &Scenario{Name: "a history", Steps: history, AnyEnd: true}
	r := x.run(t, s, func(*World) {}, func(w *World) {
		w.play(begin)
		for _, step := range history {
			step.Do(w)
			time.Sleep(pause)
		}
		picture := w.picture()
		w.mu.Lock()
		defer w.mu.Unlock()
		end = fmt.Sprint(picture, w.faults, w.refused, w.lost, w.held)
	})
	return end, r.wrong(nil)
}

// randomHistories tries -explore.random histories of up to 25 random steps, with random pauses. The
// steps without which a history still fails are left out, one after the other.
func (x *explorer) randomHistories() {
	x.t.Run("Random", func(t *testing.T) {
		moves := x.moves()
		pauses := []time.Duration{0, time.Microsecond, time.Millisecond, 50 * time.Millisecond,
			2 * time.Second, time.Minute}
		for i := range *random {
			choice := rand.New(rand.NewPCG(uint64(*seed), uint64(i)))
			history := make([]Step, 1+choice.IntN(25))
			for i := range history {
				history[i] = moves[choice.IntN(len(moves))].then(pauses[choice.IntN(len(pauses))])
			}
			x.tryRandom(t, fmt.Sprintf("-explore.seed=%d-%d", *seed, i), history)
		}
	})
}

// then returns a step with a pause after it.
func (s Step) then(pause time.Duration) Step {
	return Step{fmt.Sprintf("%s, then %v", s.Name, pause), func(w *World) {
		s.Do(w)
		time.Sleep(pause)
	}}
}

func (x *explorer) tryRandom(t *testing.T, name string, history []Step) {
	problemsOf := func(history []Step) (problems []string) {
		_, problems = x.try(t, nil, history, 0)
		return problems
	}
	t.Run(name, func(t *testing.T) {
		problems := problemsOf(history)
		if len(problems) == 0 {
			return
		}
		for i := range slices.Backward(history) {
			shorter := slices.Delete(slices.Clone(history), i, i+1)
			if fewer := problemsOf(shorter); len(fewer) > 0 {
				history, problems = shorter, fewer
			}
		}
		fail(t, "after\n  "+nameOf(history, "\n  "), problems)
	})
}
