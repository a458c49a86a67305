package explore

import (
	"fmt"
	"hash/fnv"
	"math/bits"
	"math/rand/v2"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// plans returns the cases of a family: in each scenario, what faults returns, which is what else can
// go wrong in a plan of which that is the result. With -explore.every, a second fault follows in the
// short scenarios.
func (x *explorer) plans(family string, faults func(plan, *result) []plan) (all []plan) {
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
	for i := range x.controller.Scenarios {
		s := &x.controller.Scenarios[i]
		name := path.Join(family, s.Name)
		x.t.Run(name, func(t *testing.T) {
			calm := x.calmly(t, s)
			if len(calm.unrest) > 0 {
				return // it fails already, and each case would take long
			}
			p := plan{name: name, steps: s.played(x.controller), calm: calm, more: 1}
			if *every && len(s.Steps) <= 3 {
				p.more = 2
			}
			all = append(all, disturb(p, calm)...)
		})
	}
	return all
}

// try runs cases as subtests, the most telling ones first, until the budget is used; and then those
// that follow from them.
func (x *explorer) try(plans []plan) {
	x.t.Helper()
	sortByRank(plans)
	began, tried, missed := time.Now(), 0, 0
	for i := 0; i < len(plans); i++ {
		p := plans[i]
		name := x.t.Name() + "/" + strings.ReplaceAll(p.name, " ", "_")
		isLeftOut := p.shared && !x.limit.has(name) || x.limit.isUsed(tried, time.Since(began))
		if isLeftOut && name != x.filmed {
			continue
		}
		x.t.Run(p.name, func(t *testing.T) {
			r := x.run(t, p)
			tried++
			if p.calm != nil && !r.isDisturbed() {
				// When two things happen at the same time, their order may differ from run to run.
				missed++
				t.Skip("the request or the event was not there this time")
			}
			plans = append(plans, x.judge(t, p, r)...)
		})
	}
	if missed > 10 && 4*missed > tried { // then the undisturbed run had an order of events that is rare
		x.t.Errorf("too many cases did not come about: %d of %d", missed, tried)
	}
	if tried > 1 {
		took := time.Since(began)
		x.t.Logf("%d of %d cases were explored in %v, the most telling ones first. All would take %v: "+
			"-explore.shard 1/1", tried, len(plans), took.Round(time.Second),
			(took / time.Duration(tried) * time.Duration(len(plans))).Round(time.Second))
	}
}

// judge fails the test if something was wrong in a case. It returns the cases that follow from it.
func (x *explorer) judge(t *testing.T, p plan, r *result) []plan {
	t.Helper()
	if p.judge != nil {
		p.judge(r, p.calm)
	}
	if !p.strict {
		r.unasked = nil
	}
	if p.calm != nil && p.calm.end != nil {
		p.calm.disturbed.count(r.differs)
	}
	x.fail(t, p.calm, r)
	if p.then == nil {
		return nil
	}
	return p.then(r)
}

// sortByRank sorts cases. The first one of each kind keeps its rank, and the others are later.
func sortByRank(plans []plan) {
	seen := map[string]uint{}
	for i := range plans {
		p := &plans[i]
		p.rank += bits.Len(seen[p.kind])
		seen[p.kind]++
	}
	slices.SortStableFunc(plans, func(a, b plan) int { return a.rank - b.rank })
}

// limit is how much is explored: a part of the cases, and of these only some, or for some time.
type limit struct {
	part, parts uint32
	cases       int
	time        time.Duration
}

// newLimit returns what the flags say.
func newLimit() (l limit, err error) {
	l.part, l.parts = 1, 1
	switch {
	case *shard != "":
		_, err = fmt.Sscanf(*shard, "%d/%d", &l.part, &l.parts)
		if err != nil || l.part < 1 || l.part > l.parts {
			return l, fmt.Errorf("-explore.shard=%s: want 1/4, for example", *shard)
		}
	case !*every:
		if l.cases, err = strconv.Atoi(*budget); err == nil {
			return l, nil
		}
		if l.time, err = time.ParseDuration(*budget); err != nil {
			return l, fmt.Errorf("-explore.budget=%s: want a time such as 10s, or a number of cases", *budget)
		}
	}
	return l, nil
}

// has reports whether a case belongs to the part.
func (l limit) has(name string) bool {
	hash := fnv.New32a()
	hash.Write([]byte(name))
	return hash.Sum32()%l.parts == l.part-1
}

// isUsed reports whether the budget is used.
func (l limit) isUsed(cases int, since time.Duration) bool {
	return l.cases > 0 && cases >= l.cases || l.time > 0 && since >= l.time
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

// histories returns all histories of up to -explore.depth steps, in a hurry and with pauses, after
// nothing and after what scenarios begin with. They go on only from states that were not seen: a
// state is what the API server has, and what goes wrong.
func (x *explorer) histories() (all []plan) {
	for _, calm := range x.calm {
		if len(calm.unrest) > 0 {
			return nil // it fails already, and each case would take long
		}
	}
	for i, s := range append([]Scenario{{Name: "nothing"}}, x.controller.Scenarios...) {
		for _, pause := range []time.Duration{time.Millisecond, x.controller.Delay} {
			if s.Begins == 0 && i > 0 {
				continue
			}
			begin := plan{name: path.Join("History", s.Name, pause.String())}
			for _, step := range s.Steps[:s.Begins] {
				begin.steps = append(begin.steps, played(step))
			}
			all = append(all, x.longer(begin, *depth, pause, map[string]bool{})...)
		}
	}
	return all
}

// longer returns the histories with one more step, and then up to n. Only those with all n steps
// are divided among the shards: the others lead to them.
func (x *explorer) longer(p plan, n int, pause time.Duration, seen map[string]bool) (plans []plan) {
	for _, move := range x.moves() {
		name := strings.NewReplacer(" ", "-", "/", ".").Replace(move.Name)
		q := plan{steps: append(slices.Clip(p.steps), move.then(pause)), shared: n <= 1, judge: lenient,
			name: path.Join(p.name, name), kind: "history", rank: 3 + len(p.steps)}
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
