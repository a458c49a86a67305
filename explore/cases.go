package explore

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"
	"time"
)

// plan is what happens in a case.
type plan struct {
	name    string
	steps   []Step        // with the waits after them
	faults  []fault       // that happen meanwhile
	rest    time.Duration // how long they may still happen after the last step
	more    int           // how many faults may follow after these
	calm    *result       // of the undisturbed run, or nil if there is none to compare with
	restart bool          // what a new process changes in the end is wrong
	shared  bool          // only one shard has it
	slow    bool          // each write takes more than a second
	// strict says that each write that the newest state does not ask for is wrong. Otherwise, only
	// deletions are: the controller cannot know yet that something is no longer asked for.
	strict bool
	judge  func(got, calm *result)  // unless it is nil
	then   func(got *result) []plan // what else to try, unless it is nil
}

// with returns the plan with one more fault.
func (p plan) with(name string, f fault) plan {
	return plan{name: path.Join(p.name, name), steps: p.steps, calm: p.calm, more: p.more - 1,
		faults: append(slices.Clip(p.faults), f)}
}

// explore tries in each scenario what faults returns: what else can go wrong in a plan of which
// that is the result. With -explore.every, a second fault follows in the short scenarios.
func (x *explorer) explore(name string, faults func(plan, *result) []plan) {
	var disturb func(plan, *result) []plan
	disturb = func(p plan, r *result) []plan {
		plans := faults(p, r)
		for i, q := range plans {
			plans[i].shared = len(p.faults) == 0
			if q.more > 0 {
				plans[i].then = func(r *result) []plan { return disturb(q, r) }
			}
		}
		return plans
	}
	x.test(name, func(t *testing.T) {
		for i := range x.controller.Scenarios {
			s := &x.controller.Scenarios[i]
			t.Run(s.Name, func(t *testing.T) {
				calm := x.calmly(t, s)
				if len(calm.unrest) > 0 {
					return // it fails already, and each case would take long
				}
				p := plan{steps: s.played(x.controller), calm: calm, more: 1}
				if *every && len(s.Steps) <= 3 {
					p.more = 2
				}
				x.count["scenarios"]++
				x.count["requests"] += len(calm.requests)
				x.count["events"] += len(calm.events)
				x.try(t, disturb(p, calm))
			})
		}
	})
}

// try runs each case as a subtest, and then those that follow from them.
func (x *explorer) try(t *testing.T, plans []plan) {
	t.Helper()
	for i := 0; i < len(plans); i++ {
		p := plans[i]
		if name := t.Name() + "/" + p.name; p.shared && name != x.filmed && !inShard(name) {
			continue
		}
		x.count["cases"]++
		t.Run(p.name, func(t *testing.T) {
			r := x.run(t, p)
			if p.calm != nil && !r.isDisturbed() {
				// When two things happen at the same time, their order may differ from run to run.
				x.count["missed"]++
				t.Skip("the request or the event was not there this time")
			}
			if p.judge != nil {
				p.judge(r, p.calm)
			}
			if !p.strict {
				x.count["late"] += len(r.unasked)
				r.unasked = nil
			}
			if p.calm != nil && p.calm.end != nil {
				p.calm.disturbed.count(r.differs)
			}
			x.fail(t, p.calm, r)
			if p.then != nil {
				plans = append(plans, p.then(r)...)
			}
		})
	}
}

// test runs one family of cases, and counts them. It fails if more than a quarter of the cases never
// reached their fault: then the undisturbed run had an order of events that is rare.
func (x *explorer) test(name string, test func(*testing.T)) {
	x.t.Run(name, func(t *testing.T) {
		x.count = map[string]int{}
		test(t)
		if n := x.count["missed"]; n > 10 && 4*n > x.count["cases"] {
			t.Errorf("too many cases did not come about: %v", x.count)
		}
		if !t.Failed() {
			t.Log(x.count)
		}
	})
}

// inShard reports whether a case belongs to the shard.
func inShard(name string) bool {
	i, n := uint32(1), uint32(4)
	if *every {
		n = 1
	}
	if *shard != "" {
		_, err := fmt.Sscanf(*shard, "%d/%d", &i, &n)
		if err != nil || i < 1 || i > n {
			panic(fmt.Sprintf("-explore.shard=%s: want 1/4, for example", *shard))
		}
	}
	hash := fnv.New32a()
	hash.Write([]byte(name))
	return hash.Sum32()%n == i-1
}

// moves returns the steps that a history may have.
func (x *explorer) moves() []Step {
	all := append(slices.Clip(x.controller.Moves), x.controller.cluster()...)
	for _, s := range x.controller.Scenarios {
		all = append(all, s.Steps...)
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

// longer returns the histories with one more step, and then up to n. Only those with all n steps
// are divided among the shards: the others lead to them.
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
func lenient(got, _ *result) { got.unasked, got.deletions = nil, nil }

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
