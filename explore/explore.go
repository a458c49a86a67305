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
	"context"
	"flag"
	"time"

	"k8s.io/client-go/rest"
)

var (
	every = flag.Bool("explore.every", false, "explore all cases, and not only those that find most "+
		"for their time")
	budget = flag.String("explore.budget", "10s", "how long to explore, or how many cases, with the most "+
		"telling ones first; 0 is without end, as with -explore.every")
	depth  = flag.Int("explore.depth", 1, "how many steps to try after each beginning, in all orders")
	random = flag.Int("explore.random", 0, "how many random histories to try")
	seed   = flag.Int64("explore.seed", 1, "which random histories")
)

// Controller describes a controller and what happens around it.
type Controller struct {
	// Run runs one process of the controller: main, without its flags. It returns when ctx is done,
	// or before, if it cannot go on. Then another process starts ten seconds later. All requests
	// must be made with config. Servers, such as that of metrics, must be off.
	Run func(ctx context.Context, config *rest.Config) error

	// CRDs are YAML files with CustomResourceDefinitions, each of which serves one version.
	CRDs []string

	// Outside, if it is set, makes what is outside of the cluster, such as a registry that answers
	// from memory. It is called for each case. Run finds it with [Outside], and a step in its World.
	Outside func() any

	// Scenarios is what users do.
	Scenarios []Scenario

	// Moves are what histories have besides all steps of all scenarios.
	Moves []Step

	// Always, if it is set, is called after each write of the controller that has succeeded, but not
	// for Events and Leases. It returns "", or what speaks against the write in the newest state, such
	// as "the Gadget is gone".
	Always func(Write, State) string

	// Eventually, if it is set, is called when everything is quiet. It returns what is wrong.
	Eventually func(State) []string

	// Delay is the longest time that the controller waits before it tries something again that the
	// API server refuses; 20 s if it is 0. Users wait that long after a step of theirs or the cluster's.
	Delay time.Duration

	// Actors are the other parts of the cluster, such as [Kubelet]. They react to what happens. If it is
	// nil, Deployments and StatefulSets roll out after each step: see [RollOut]. An empty list switches
	// that off, for a controller that does it itself.
	Actors []Actor

	// OneProcess says that two processes are never at work at once, not even for a moment. Neither a
	// Lease nor a Deployment promises that, so leave it unless you accept what Twin finds.
	OneProcess bool

	// Heal, if it is set, ends what steps have done to what is outside.
	Heal func(*World)

	// Settle is how long it may take until everything is right, when nothing goes wrong any more.
	// If it is 0, that is 20 min: after many errors, the queues of client-go wait for up to 17 min.
	Settle time.Duration

	// Timeout is how long a sync may take; 10 s if it is 0. A request that takes longer is given up.
	Timeout time.Duration
}

// Outside returns what Controller.Outside has made.
func Outside(ctx context.Context) any { return ctx.Value(outside{}) }

type outside struct{}

// Scenario is what users and the cluster do, in order. In the end, the garbage collector works, and
// what is there rolls out, unless Controller.Actors is set. If no step is CollectGarbage or RollOut,
// both follow each step.
type Scenario struct {
	Name  string
	Steps []Step

	// EndVaries says that the end is not compared with that of the undisturbed run. If two users want
	// the same, it may depend on the moment who gets it.
	EndVaries bool

	// Begins is after how many of these steps histories begin, too; 0 for none. All histories also
	// begin with nothing.
	Begins int
}

// Step is one thing that a user, the cluster or the network does.
type Step struct {
	Name string
	Do   func(*World)
}
