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
	crds       []*apiextensionsv1.CustomResourceDefinition
	calm       map[string]*result // by scenario, what comes of it if nothing goes wrong
	tried      map[string]bool    // kinds of requests that have had every error
	report     Report
}

func newExplorer(t *testing.T, c *Controller) *explorer {
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
	return &explorer{t: t, controller: c, crds: crds, calm: map[string]*result{},
		tried: map[string]bool{}}
}

// result is what came of a case.
type result struct {
	record // until the verdict; its requests and events until the faults ended

	problems []string
	repaired bool // a new process has no problems any more
	end      picture
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

// idle returns how long the controller must not write when everything is quiet.
func idle() time.Duration {
	if *every || *random > 0 {
		return time.Hour
	}
	return 10 * time.Minute
}

// steps returns the steps of a scenario, and those of the cluster in the end.
func (s *Scenario) steps() (steps []Step) {
	named := slices.ContainsFunc(s.Steps, func(s Step) bool {
		return s.Name == CollectGarbage.Name || s.Name == RollOut.Name
	})
	for _, step := range s.Steps {
		steps = append(steps, step)
		if !named {
			steps = append(steps, CollectGarbage, RollOut)
		}
	}
	if named {
		steps = append(steps, CollectGarbage, RollOut)
	}
	return steps
}

// run runs a scenario in a world, with these faults, and calls play to let it happen.
func (x *explorer) run(t *testing.T, s *Scenario, faults []fault, play func(*World)) *result {
	t.Helper()
	var r result
	bubble(t, func() {
		w, err := x.newWorld()
		if err != nil {
			r.mistakes = []string{err.Error()}
			return
		}
		w.faults = slices.Clone(faults)
		if len(faults) > 0 && faults[0].steps != nil {
			w.server.DisableStreams()
		}
		w.start()
		play(w)
		w.mu.Lock()
		requests, events := w.requests, w.events
		w.mu.Unlock()
		w.settle()
		r.problems, r.end = x.problems(w, s)
		w.mu.Lock()
		w.filming.Lock()
		r.record = w.record
		w.filming.Unlock()
		r.requests, r.events, r.written = requests, events, maps.Clone(w.written)
		w.mu.Unlock()
		if len(r.problems) > 0 {
			w.restart()
			w.settle()
			problems, _ := x.problems(w, s)
			r.repaired = len(problems) == 0
		}
		w.stop()
		r.mistakes = w.mistakes
	})
	if len(r.mistakes) > 0 {
		t.Fatalf("the description of the controller cannot be: %s", strings.Join(r.mistakes, "; "))
	}
	return &r
}

// problems returns what is wrong when everything is quiet, and after more time without a reason to
// write.
func (x *explorer) problems(w *World, s *Scenario) (problems []string, end picture) {
	if x.controller.Eventually != nil {
		problems = x.controller.Eventually(w.State())
	}
	end = w.picture()
	w.mu.Lock()
	inVain := slices.Clone(w.inVain)
	w.mu.Unlock()
	calm := x.calm[s.Name]
	if calm != nil && !s.AnyEnd && slices.Equal(inVain, calm.inVain) {
		problems = append(problems, end.differences(calm.end)...)
	}
	before := w.server.Revision()
	time.Sleep(idle())
	for _, resource := range w.resources() {
		for _, write := range w.server.History(resource) {
			if write.Revision > before {
				problems = append(problems, fmt.Sprintf("%s was written although nothing had happened for "+
					"a long time", nameOf(cmp.Or(write.New, write.Old))))
			}
		}
	}
	return limit(problems), end
}

// limit returns the first few of many problems.
func limit(problems []string) []string {
	const most = 8
	problems = slices.Compact(problems)
	if more := len(problems) - most; more > 1 {
		return append(problems[:most:most], fmt.Sprintf("and %d more", more))
	}
	return problems
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

// calmly runs a scenario that nothing disturbs, once.
func (x *explorer) calmly(t *testing.T, s *Scenario) *result {
	t.Helper()
	if calm := x.calm[s.Name]; calm != nil {
		return calm
	}
	var history []map[string][]int64
	r := x.run(t, s, nil, func(w *World) {
		for _, step := range s.steps() {
			w.play(step)
			history = append(history, w.revisions())
		}
	})
	r.history = history
	for _, end := range r.ends {
		r.problems = append(r.problems, "the controller ended by itself: "+end)
	}
	x.fail(t, s.Name, r)
	x.calm[s.Name] = r
	return r
}

// bubble runs test in a bubble, and ends the program if it hangs there: no time passes in a bubble
// while a goroutine waits for what is outside.
func bubble(t *testing.T, test func()) {
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
	synctest.Test(t, func(*testing.T) { test() })
}
