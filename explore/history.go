package explore

import (
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"
	"time"
)

// moves returns the steps that a history may have.
func (x *explorer) moves() []Step {
	all := slices.Clone(x.controller.Moves)
	for i := range x.controller.Scenarios {
		all = append(all, x.controller.Scenarios[i].all()...)
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
	x.test("History", func(t *testing.T) {
		for i, s := range append([]Scenario{{Name: "nothing"}}, x.controller.Scenarios...) {
			for _, pause := range []time.Duration{time.Millisecond, x.controller.Delay} {
				if s.Begins == 0 && i > 0 {
					continue
				}
				t.Run(fmt.Sprintf("%s/%v", s.Name, pause), func(t *testing.T) {
					var begin plan
					for _, step := range s.Steps[:s.Begins] {
						begin.steps = append(begin.steps, played(step))
					}
					seen := map[string]bool{}
					x.try(t, x.longer(begin, *depth, pause, seen))
					x.count["states"] += len(seen)
				})
			}
		}
	})
}

// longer returns the histories with one more step, and then up to n. Only those with all n steps are
// divided among the shards: the others lead to them.
func (x *explorer) longer(p plan, n int, pause time.Duration, seen map[string]bool) (plans []plan) {
	for _, move := range x.moves() {
		q := plan{steps: append(slices.Clip(p.steps), move.then(pause)), shared: n <= 1, judge: lenient,
			name: path.Join(p.name, strings.NewReplacer(" ", "-", "/", ".").Replace(move.Name))}
		q.then = func(r *result) []plan {
			known := seen[r.state]
			if seen[r.state] = true; known || n <= 1 {
				return nil
			}
			return x.longer(q, n-1, pause, seen)
		}
		plans = append(plans, q)
	}
	return plans
}

// lenient accepts all writes, because users do many things at once.
func lenient(got, _ *result) { got.unasked = nil }

// then returns the step with a pause after it.
func (s Step) then(pause time.Duration) Step {
	return Step{s.Name, func(w *World) {
		s.Do(w)
		time.Sleep(pause)
	}}
}

// randomHistories tries -explore.random histories of up to 25 random steps, with random pauses.
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
				history[i] = move.then(pause)
				history[i].Name += fmt.Sprintf(", then %v", pause)
			}
			t.Run(fmt.Sprintf("-explore.seed=%d-%d", *seed, i), func(t *testing.T) {
				x.fail(t, nil, x.shortest(t, history))
			})
		}
	})
}

// shortest runs a history. If it fails, it leaves out the steps without which it still fails, one
// after the other, and returns what comes of the others.
func (x *explorer) shortest(t *testing.T, history []Step) *result {
	t.Helper()
	r := x.run(t, plan{steps: history})
	lenient(r, nil)
	for i := range slices.Backward(history) {
		if len(r.wrong()) == 0 {
			break
		}
		shorter := slices.Delete(slices.Clone(history), i, i+1)
		fewer := x.run(t, plan{steps: shorter})
		if lenient(fewer, nil); len(fewer.wrong()) > 0 {
			history, r = shorter, fewer
		}
	}
	return r
}
