package explore

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/klog/v2"

	"example.com/sample-controller/explore/apiserver"
)

// explorer explores one controller.
type explorer struct {
	families
	t        *testing.T
	found    func(Finding) // gets what is wrong, unless it is nil
	filmed   string        // the name of a case
	crds     []*apiserver.CRD
	calm     map[string]*result  // by scenario, what comes of it if nothing goes wrong
	failures map[string]failures // by what was wrong first
	limit    limit
}

// played returns the steps of a scenario, with the waits of users. What the cluster does after a
// step is part of it.
func (s *Scenario) played(c *Controller) (steps []Step) {
	named := slices.ContainsFunc(s.Steps, func(s Step) bool {
		return s.Name == CollectGarbage.Name || s.Name == RollOut.Name
	})
	for i, step := range s.Steps {
		if named && i < len(s.Steps)-1 {
			steps = append(steps, played(step))
		} else {
			steps = append(steps, played(step, c.cluster()...))
		}
	}
	return steps
}

// run runs a case in a world of its own.
func (x *explorer) run(t *testing.T, p plan) *result {
	t.Helper()
	var r result
	bubble(t, func(t *testing.T) {
		w := newWorld(t, x.controller, x.crds)
		w.filmed = *film != "" || t.Name() == x.filmed
		v := newVerdicts(w)
		// Handlers have no context.
		klog.SetLoggerWithOptions(w.logger(), klog.ContextualLogger(true))
		for _, f := range p.faults {
			w.hooks = append(w.hooks, f.in(w))
		}
		if p.slow {
			w.latency = 1100 * time.Millisecond
			w.shoot(Shot{What: "fault", Text: fmt.Sprintf("each write took %v", w.latency)})
		}
		w.start()
		for _, step := range p.steps {
			w.shoot(Shot{What: "step", Text: step.Name})
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
		r.problems, r.differs = x.problems(w, p, r.end)
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
	for time.Since(since) < time.Hour {
		if isRight() {
			r.remark = fmt.Sprintf("(it is right at most %v later: if that is soon enough, set Settle to more)",
				time.Since(since).Round(time.Minute))
			return
		}
	}
	w.restart()
	w.settle()
	if isRight() {
		r.remark = "(a new process puts right what is wrong in the end)"
	}
}

// idle is how long nothing may be written in the end.
func idle() time.Duration {
	if *every || *random > 0 {
		return time.Hour
	}
	return 10 * time.Minute
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
	before := w.server.Revision()
	time.Sleep(idle())
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
