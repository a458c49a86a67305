package explore

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"

	"example.com/sample-controller/explore/apiserver"
)

// explorer explores one controller.
type explorer struct {
	t          *testing.T
	controller *Controller
	found      func(Finding) // gets what is wrong, unless it is nil
	crds       []*apiextensionsv1.CustomResourceDefinition
	calm       map[string]*result // by scenario, what comes of it if nothing goes wrong
	tried      map[string]bool    // kinds of requests that have had every error
	outcomes   []Outcome

	count map[string]int // of cases and other things
	told  time.Time      // when it said how far it is
}

func newExplorer(t *testing.T, c *Controller, found func(Finding)) *explorer {
	t.Helper()
	crds, err := apiserver.ReadCRDs(c.CRDs...)
	if err != nil {
		t.Fatal(err)
	}
	// Thousands of failures would be logged. And the handlers wait a moment after the last error: in
	// a bubble, that was years ago.
	logging, handlers := klog.CaptureState(), utilruntime.ErrorHandlers
	t.Cleanup(func() {
		logging.Restore()
		utilruntime.ErrorHandlers = handlers
	})
	klog.SetLogger(klog.Logger{})
	utilruntime.ErrorHandlers = nil
	return &explorer{t: t, controller: c, found: found, crds: crds, calm: map[string]*result{},
		tried: map[string]bool{}}
}

// result is what came of a case.
type result struct {
	record // until the verdict; its requests and events until the faults ended

	problems []string
	repaired bool   // a new process has no problems any more
	state    string // after the last step of a history
	end      picture
	anyEnd   bool
	history  []map[string][]int64 // for each step, by resource, the revisions of all writes so far
}

// unasked is a write that the newest state did not ask for.
type unasked struct {
	deletion bool
	what     string // in words
}

// wrong returns all that is wrong, in words.
func (r *result) wrong() (wrong []string) {
	for _, u := range r.unasked {
		wrong = append(wrong, u.what)
	}
	wrong = append(wrong, r.problems...)
	if len(r.problems) > 0 && r.repaired {
		wrong = append(wrong, "(a new process puts right what is wrong in the end)")
	}
	for _, request := range r.restless {
		wrong = append(wrong, "the controller makes one request after the other at once: "+request)
	}
	return wrong
}

// all returns the steps of a scenario, and those of the cluster after each of them, or in the end.
func (s *Scenario) all() (all []Step) {
	named := slices.ContainsFunc(s.Steps, func(s Step) bool {
		return s.Name == CollectGarbage.Name || s.Name == RollOut.Name
	})
	for i, step := range s.Steps {
		all = append(all, step)
		if !named || i == len(s.Steps)-1 {
			all = append(all, CollectGarbage, RollOut)
		}
	}
	return all
}

// played returns all steps of a scenario, with the waits of users.
func (s *Scenario) played() (steps []Step) {
	for _, step := range s.all() {
		steps = append(steps, played(step))
	}
	return steps
}

// played returns a step after which users wait. A process that was killed for longer starts again
// after it.
func played(s Step) Step {
	return Step{s.Name, func(w *World) {
		time.Sleep(time.Millisecond) // nobody does two things in the same instant
		s.Do(w)
		if w.isDown() {
			w.start()
		}
		select {
		case <-time.After(w.controller.Delay):
		case <-w.hurry:
		}
	}}
}

// run runs a case in a world of its own.
func (x *explorer) run(t *testing.T, p plan) *result {
	t.Helper()
	var r result
	bubble(t, func(t *testing.T) {
		w := x.newWorld(t)
		w.faults = slices.Clone(p.faults)
		w.start()
		for _, step := range p.steps {
			w.shoot(Shot{What: "step", Text: step.Name})
			step.Do(w)
		}
		if p.calm == nil {
			r.state = w.state()
		}
		time.Sleep(p.rest)
		w.mu.Lock()
		requests, events := w.requests, w.events
		w.mu.Unlock()
		w.settle()
		r.end = w.picture()
		r.problems = x.problems(w, p, r.end)
		w.mu.Lock()
		w.filming.Lock()
		r.record = w.record
		w.filming.Unlock()
		r.requests, r.events, r.written = requests, events, maps.Clone(w.written)
		w.mu.Unlock()
		if len(r.problems) > 0 {
			w.stop()
			w.start()
			w.settle()
			r.repaired = len(x.problems(w, p, w.picture())) == 0
		}
		w.stop()
		if len(w.mistakes) > 0 {
			t.Fatal("the description of the controller cannot be:", strings.Join(w.mistakes, "; "))
		}
	})
	return &r
}

// problems returns what is wrong when everything is quiet, and after more time without a reason to
// write.
func (x *explorer) problems(w *World, p plan, end picture) (problems []string) {
	if x.controller.Eventually != nil {
		problems = x.controller.Eventually(w.State())
	}
	w.mu.Lock()
	inVain := slices.Clone(w.inVain)
	w.mu.Unlock()
	if p.calm != nil && !p.calm.anyEnd && slices.Equal(inVain, p.calm.inVain) {
		problems = append(problems, end.differences(p.calm.end)...)
	}
	before, idle := w.server.Revision(), 10*time.Minute
	if *every || *random > 0 {
		idle = time.Hour
	}
	time.Sleep(idle)
	for _, resource := range w.resources() {
		for _, write := range w.server.History(resource) {
			if write.Revision > before {
				problems = append(problems, fmt.Sprintf("%s was written although nothing had happened for "+
					"a long time", nameOf(cmp.Or(write.New, write.Old))))
			}
		}
	}
	const most = 8
	problems = slices.Compact(problems)
	if more := len(problems) - most; more > 1 {
		problems = append(problems[:most], fmt.Sprintf("and %d more", more))
	}
	return problems
}

// calmly runs a scenario that nothing disturbs, once.
func (x *explorer) calmly(t *testing.T, s *Scenario) *result {
	t.Helper()
	if calm := x.calm[s.Name]; calm != nil {
		return calm
	}
	var history []map[string][]int64
	p := plan{steps: s.played()}
	for i, step := range p.steps {
		p.steps[i].Do = func(w *World) {
			step.Do(w)
			history = append(history, w.revisions())
		}
	}
	r := x.run(t, p)
	r.history, r.anyEnd = history, s.AnyEnd
	for _, end := range r.ends {
		r.problems = append(r.problems, "the controller ended by itself: "+end)
	}
	x.fail(t, nil, r)
	x.calm[s.Name] = r
	return r
}

// revisions returns the revisions of all writes so far, by resource, but for Events and Leases.
func (w *World) revisions() map[string][]int64 {
	revisions := map[string][]int64{}
	for _, resource := range w.resources() {
		for _, write := range w.server.History(resource) {
			revisions[resource.Resource] = append(revisions[resource.Resource], write.Revision)
		}
	}
	return revisions
}

// bubble runs test in a bubble, and ends the program if it hangs there: no time passes in a bubble
// while a goroutine waits for what is outside.
func bubble(t *testing.T, test func(*testing.T)) {
	t.Helper()
	done := make(chan struct{})
	defer close(done)
	go guard(t.Name(), done)
	defer func() {
		// A process that ends by itself may leave goroutines behind, because then main returns.
		if r := recover(); r != nil && !strings.Contains(fmt.Sprint(r), "blocked goroutines remain") {
			panic(r)
		}
	}()
	synctest.Test(t, test)
}
