package explore_test

import (
	"errors"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/explore"
)

// registry is outside of the cluster: it answers from memory.
type registry struct{ isDown, hasA atomic.Bool }

// register is the sync of a controller that registers each Gadget.
func register(p *process, gadget object) error {
	r := explore.Outside(p.ctx).(*registry)
	if r.isDown.Load() {
		return errors.New("the registry is down")
	}
	r.hasA.Store(true)
	return p.setStatus(gadget, map[string]any{"registered": true})
}

// TestRegistry explores a controller that has something outside of the cluster.
func TestRegistry(t *testing.T) {
	explore.Test(t, explore.Controller{
		Run: program(register), CRDs: []string{gadgets},
		Outside: func() any { return &registry{} },
		Scenarios: []explore.Scenario{{Name: "down", Steps: []explore.Step{
			{Name: "the registry breaks down", Do: func(w *explore.World) {
				w.Outside.(*registry).isDown.Store(true)
			}},
			createGadget,
		}}},
		Heal: func(w *explore.World) { w.Outside.(*registry).isDown.Store(false) },
		Eventually: func(now explore.State) (problems []string) {
			gadget := explore.Get[metav1.PartialObjectMetadata](now, "gadgets", "a")
			if gadget != nil && !now.Outside.(*registry).hasA.Load() {
				problems = append(problems, "Gadget a is not registered")
			}
			return problems
		},
	})
}
