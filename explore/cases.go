package explore

import (
	"cmp"
	"fmt"
	"math/bits"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"

	"example.com/sample-controller/explore/apiserver"
)

// Test explores a controller. Each case is a subtest. What fails can be run alone, with the command
// that the failure names. It returns what the controller has done about errors.
func Test(t *testing.T, c Controller) []Outcome {
	t.Helper()
	return explore(t, c, "", nil)
}

// Find explores a controller as Test does, but returns what is wrong, and does not fail. One case,
// unless its name is "", is never left out.
func Find(t *testing.T, c Controller, always string) (findings []Finding) {
	t.Helper()
	explore(t, c, always, func(f Finding) { findings = append(findings, f) })
	return findings
}

func explore(t *testing.T, c Controller, always string, found func(Finding)) []Outcome {
	t.Helper()
	names := map[string]bool{}
	for _, s := range c.Scenarios {
		if names[s.Name] {
			t.Fatalf("two scenarios have the name %q: give each a name of its own", s.Name)
		}
		names[s.Name] = true
	}
	if c.Run == nil || len(names) == 0 {
		t.Fatal("nothing to explore: set Run and Scenarios of the explore.Controller")
	}
	c.Delay = cmp.Or(c.Delay, 20*time.Second)
	c.Settle = cmp.Or(c.Settle, 20*time.Minute)
	c.Timeout = cmp.Or(c.Timeout, 10*time.Second)
	crds, err := apiserver.ReadCRDs(c.CRDs...)
	if err != nil {
		t.Fatal(err)
	}
	limit, err := newLimit()
	if err != nil {
		t.Fatal(err)
	}
	// Of the handlers of errors, only the first one stays, which logs. The other one waits a moment
	// after the last error: in a bubble, that was years ago.
	logging, handlers := klog.CaptureState(), utilruntime.ErrorHandlers
	defer func() {
		logging.Restore()
		utilruntime.ErrorHandlers = handlers
	}()
	klog.SetLogger(klog.Logger{})
	utilruntime.ErrorHandlers = handlers[:1]
	x := &explorer{controller: &c, t: t, limit: limit, found: found, always: always, crds: crds,
		tried: map[string]bool{}, calm: map[string]*result{}, failures: map[string]failures{}}
	defer x.summarize()
	defer x.checkIsAlive()
	var plans []plan
	for _, family := range []struct {
		name   string
		faults func(plan, *result) []plan
	}{{"Crash", x.crashes}, {"Error", x.errors}, {"Event", x.surprises}, {"Schedule", x.schedules},
		{"Lag", x.lags}, {"Slow", x.slow}, {"Twin", x.twins}} {
		plans = append(plans, x.plans(family.name, family.faults)...)
	}
	x.try(append(plans, x.histories()...))
	x.randomHistories()
	return x.outcomes
}

// plans returns the cases of a family. In each scenario, faults gets a plan and its result, and returns
// the plans with one more fault. With -explore.every, a second fault follows in the short scenarios.
func (x *explorer) plans(family string, faults func(plan, *result) []plan) (all []plan) {
	var disturb func(plan, *result) []plan
	disturb = func(p plan, r *result) []plan {
		plans := faults(p, r)
		for i, q := range plans {
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
		if x.limit.isUsed(tried, time.Since(began)) && name != x.always {
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
			"-explore.budget 0", tried, len(plans), took.Round(time.Second),
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
		p.calm.disturbed[r.differs]++
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

// limit is how much is explored: some cases, or for some time. If both are 0, there is no limit.
type limit struct {
	cases int
	time  time.Duration
}

func newLimit() (l limit, err error) {
	if *every {
		return l, nil
	}
	if l.cases, err = strconv.Atoi(*budget); err == nil {
		return l, nil
	}
	if l.time, err = time.ParseDuration(*budget); err != nil {
		err = fmt.Errorf("-explore.budget=%s: want a time such as 10s, or a number of cases", *budget)
	}
	return l, err
}

// isUsed reports whether there is a limit, and it is reached.
func (l limit) isUsed(cases int, since time.Duration) bool {
	return l.cases > 0 && cases >= l.cases || l.time > 0 && since >= l.time
}
