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

// histories tries all histories of up to -explore.depth steps, in a hurry and with pauses, after
// nothing and after what scenarios begin with. It goes on only from states that it has not seen: a
// state is what the API server has, and what goes wrong.
func (x *explorer) histories() {
	begins := []Scenario{{Name: "nothing"}}
	for _, s := range x.controller.Scenarios {
		if s.Begins > 0 {
			begins = append(begins, Scenario{Name: s.Name, Steps: s.Steps[:s.Begins]})
		}
	}
	x.t.Run("History", func(t *testing.T) {
		c := &cases{what: map[string]int{}}
		for _, s := range begins {
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
			var names []string // of the cases that lead to this one, and its own
			for i := range history {
				names = append(names, nameOfHistory(history[:i+1]))
			}
			c.run(t, names[len(names)-1], last, func(t *testing.T) {
				end, r := x.tryHistory(t, begin, history, pause)
				x.fail(t, "", r, names[:len(names)-1]...)
				if !seen[end] {
					seen[end] = true
					longer = append(longer, history)
				}
			})
		}
	}
	return longer
}

// nameOfHistory returns the name of the case.
func nameOfHistory(history []Step) string {
	var names []string
	for _, s := range history {
		names = append(names, s.Name)
	}
	return strings.NewReplacer(" ", "-", "/", ".").Replace(strings.Join(names, ", "))
}

// tryHistory runs a history, and returns the state after it, and what came of it.
func (x *explorer) tryHistory(
	t *testing.T, begin, history []Step, pause time.Duration,
) (end string, r *result) {
	t.Helper()
	s := &Scenario{Name: "a history", Steps: history, AnyEnd: true}
	r = x.run(t, s, nil, func(w *World) {
		for _, step := range begin {
			w.play(step)
		}
		for _, step := range history {
			w.take(step)
			time.Sleep(pause)
		}
		picture := w.picture()
		w.mu.Lock()
		defer w.mu.Unlock()
		end = fmt.Sprint(picture, w.troubles, w.refused, w.lost, w.held)
	})
	r.unasked = nil // users do many things at once
	return end, r
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
				move, pause := moves[choice.IntN(len(moves))], pauses[choice.IntN(len(pauses))]
				history[i] = Step{fmt.Sprintf("%s, then %v", move, pause), func(w *World) {
					move.Do(w)
					time.Sleep(pause)
				}}
			}
			x.tryRandom(t, fmt.Sprintf("-explore.seed=%d-%d", *seed, i), history)
		}
	})
}

func (x *explorer) tryRandom(t *testing.T, name string, history []Step) {
	t.Run(name, func(t *testing.T) {
		_, r := x.tryHistory(t, nil, history, 0)
		for i := range slices.Backward(history) {
			if len(r.wrong()) == 0 {
				return
			}
			shorter := slices.Delete(slices.Clone(history), i, i+1)
			if _, fewer := x.tryHistory(t, nil, shorter, 0); len(fewer.wrong()) > 0 {
				history, r = shorter, fewer
			}
		}
		x.fail(t, "", r)
	})
}
