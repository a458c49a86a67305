package explore

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/klog/v2"

	"example.com/sample-controller/explore/apiserver"
)

// explorer explores one controller.
type explorer struct {
	controller *Controller
	t          *testing.T
	found      func(Finding) // gets what is wrong, unless it is nil
	always     string        // the name of a case that is never left out
	crds       []*apiserver.CRD
	tried      map[string]bool // kinds of requests that have had every error
	outcomes   []Outcome
	calm       map[string]*result  // by scenario, what comes of it if nothing goes wrong
	failures   map[string]failures // by what was wrong first
	limit      limit
}

// played returns the steps of a scenario, with the waits of users. What the cluster does after a
// step is part of it.
func (s *Scenario) played(c *Controller) (steps []Step) {
	named := slices.ContainsFunc(s.Steps, func(s Step) bool {
		return s.Name == CollectGarbage.Name || s.Name == RollOut.Name
	})
	for i, step := range s.Steps {
		then := c.cluster()
		if named && i < len(s.Steps)-1 {
			then = nil
		}
		steps = append(steps, played(step, then...))
	}
	return steps
}

func (x *explorer) run(t *testing.T, p plan) *result {
	t.Helper()
	var r result
	bubble(t, func(t *testing.T) {
		w := newWorld(x.controller, x.crds)
		v := newVerdicts(w)
		// Handlers have no context.
		klog.SetLoggerWithOptions(w.logger(), klog.ContextualLogger(true))
		for _, f := range p.faults {
			w.hooks = append(w.hooks, f.in(w))
		}
		if p.slow {
			w.latency = 1100 * time.Millisecond
			w.mark("fault", fmt.Sprintf("each write took %v", w.latency))
		}
		w.start()
		for _, step := range p.steps {
			w.mark("step", step.Name)
			step.Do(w)
			r.steps = append(r.steps, w.server.Revision())
		}
		if p.calm == nil {
			r.state = w.state()
		}
		time.Sleep(p.rest)
		disturbed := w.recorded()
		w.settle()
		r.end = w.picture()
		problems, differences := x.problems(w, p, r.end)
		r.problems, r.differs = problems, strings.Join(differences, "; ")
		w.serving.Lock()
		r.findings, r.written = v.findings, maps.Clone(v.written)
		w.serving.Unlock()
		r.record = w.recorded()
		r.last, r.requests, r.events = r.requests, disturbed.requests, disturbed.events
		switch {
		case len(r.problems) > 0:
			x.tryAgain(w, p, &r)
		case p.restart:
			revision := w.server.Revision()
			w.restart()
			w.settle()
			r.problems = w.doneAfter(revision)
		}
		w.stop()
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(w.mistakes) > 0 {
			t.Fatal("the description of the controller cannot be:", strings.Join(w.mistakes, "; "))
		}
	})
	klog.SetLogger(klog.Logger{})
	if p.calm != nil {
		r.unmeant(p.calm)
	}
	return &r
}

// tryAgain finds out whether more time puts right what is wrong in the end, or a new process.
func (x *explorer) tryAgain(w *World, p plan, r *result) {
	isRight := func() bool {
		problems, _ := x.problems(w, p, w.picture())
		return len(problems) == 0
	}
	since := time.Now()
	for writes := int64(0); time.Since(since) < time.Hour && writes < mostChanges; { // or it never rests
		before := w.server.Revision()
		if isRight() {
			r.remark = fmt.Sprintf("(it is right at most %v later: if that is soon enough, set Settle to more)",
				time.Since(since).Round(time.Minute))
			return
		}
		writes = w.server.Revision() - before
	}
	w.restart()
	w.settle()
	if isRight() {
		r.remark = "(a restart of the program repairs this)"
	}
}

// problems returns what is wrong when everything is quiet, and after more time without a reason to
// write; and how the end differs from that of the undisturbed run.
func (x *explorer) problems(w *World, p plan, end picture) (problems, differences []string) {
	if x.controller.Eventually != nil {
		problems = x.controller.Eventually(w.State())
	}
	if p.calm != nil && p.calm.end != nil && slices.Equal(w.recorded().inVain, p.calm.inVain) {
		differences = end.differences(p.calm.end)
	}
	before, idle := w.server.Revision(), 10*time.Minute
	if *every || *random > 0 {
		idle = time.Hour
	}
	time.Sleep(idle)
	problems = slices.Compact(slices.Concat(problems, differences, w.unrestSince(before)))
	const most = 8
	if more := len(problems) - most; more > 1 {
		problems = append(problems[:most], fmt.Sprintf("and %d more", more))
	}
	return problems, differences
}

// calmly runs a scenario that nothing disturbs, once.
func (x *explorer) calmly(t *testing.T, s *Scenario) *result {
	t.Helper()
	if calm := x.calm[s.Name]; calm != nil {
		return calm
	}
	r := x.run(t, plan{steps: s.played(x.controller), restart: true})
	r.disturbed = ends{}
	if s.EndVaries || len(r.problems) > 0 { // then another end may be the right one
		r.end = nil
	}
	for _, end := range r.ends {
		r.problems = append(r.problems, "the controller ended by itself: "+end)
	}
	for _, step := range s.Steps {
		if x.found == nil && slices.Contains(r.inVain, step.Name) {
			r.problems = append(r.problems, "this step could not happen: "+step.Name)
		}
	}
	x.fail(t, nil, r)
	x.calm[s.Name] = r
	return r
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

// longer returns the histories with one more step, and then up to n.
func (x *explorer) longer(p plan, n int, pause time.Duration, seen map[string]bool) (plans []plan) {
	for _, move := range x.moves() {
		name := strings.NewReplacer(" ", "-", "/", ".").Replace(move.Name)
		q := plan{steps: append(slices.Clip(p.steps), move.then(pause)), judge: lenient,
			name: path.Join(p.name, name), kind: "history", rank: 3 + len(p.steps)}
		q.then = func(r *result) []plan {
			if n <= 1 || seen[r.state] {
				return nil
			}
			seen[r.state] = true
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
		x.t.Run(fmt.Sprintf("Random/-explore.seed=%d-%d", *seed, i), func(t *testing.T) {
			x.fail(t, nil, x.shortest(t, history))
		})
	}
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
