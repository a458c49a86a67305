// Package explore tries every fault at every place, on any controller that takes a *rest.Config.
//
// A test describes the controller: how one process of it runs, and what users do. Test then runs
// this in virtual time, with an API server in memory, again and again. Each time something else
// goes wrong: the process dies before or after one of its requests, a request gets an error, an
// event comes late or never, a list is old, a worker is slow. In the end, everything must be as if
// nothing had happened. The field calls that eventually stable reconciliation (Anvil, OSDI 2024).
//
//	func TestExplore(t *testing.T) {
//		explore.Test(t, explore.Controller{
//			Run:  func(ctx context.Context, config *rest.Config) error { return run(ctx, config) },
//			CRDs: []string{"config/crd.yaml"},
//			Scenarios: []explore.Scenario{{Name: "scale", Steps: []explore.Step{
//				explore.Create(gadget),
//				explore.Patch("gadgets/a", `{"spec": {"replicas": 3}}`),
//			}}},
//		})
//	}
//
// Each case runs in a bubble of [testing/synctest]. So the controller may use no real network and
// no files while it runs, and no goroutine may wait for one outside. Test ends with an error that
// says so.
package explore

import (
	"cmp"
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
// unless its name is "", is never left out, and its findings have the whole film.
func Find(t *testing.T, c Controller, filmed string) (findings []Finding) {
	t.Helper()
	explore(t, c, filmed, func(f Finding) { findings = append(findings, f) })
	return findings
}

func explore(t *testing.T, c Controller, filmed string, found func(Finding)) []Outcome {
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
	x := &explorer{families: families{controller: &c, tried: map[string]bool{}}, t: t, limit: limit,
		found: found, filmed: filmed, crds: crds, calm: map[string]*result{}, failures: map[string]failures{}}
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
