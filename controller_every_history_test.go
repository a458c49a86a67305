package main

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var depth = flag.Int("depth", 1, "how many steps the histories of TestEveryHistory have")

// states are the states in which a history begins.
var states = map[string][]step{
	"nothing":  nil,
	"ready":    {create, rollOut},
	"renamed":  {create, rollOut, rename.y()},
	"taken":    {do("create a foreign Deployment"), create},
	"two Foos": {create, create.b(), rollOut},
}

// moves are the steps that a history may have: each action, with the names and counts that matter.
var moves = func() (moves []step) {
	for _, action := range slices.Sorted(maps.Keys(actions)) {
		moves = append(moves, do(action))
	}
	return append(moves, create.b(), create.y(), rename.y(), do("scale a Foo").to(3),
		do("delete a Foo").b(), do("delete a Deployment").y())
}()

// TestEveryHistory tries all histories of up to -depth steps, in a hurry and with pauses. It goes
// on only from states that it has not seen: a state is what the API server has, and what is
// disturbed.
func TestEveryHistory(t *testing.T) {
	skipIfShort(t)
	var c cases
	for _, name := range slices.Sorted(maps.Keys(states)) {
		for _, pause := range []time.Duration{time.Millisecond, pause} {
			t.Run(fmt.Sprintf("%s/%v", name, pause), func(t *testing.T) {
				seen := map[string]bool{}
				histories := [][]step{nil}
				for i := range *depth {
					last := i == *depth-1
					histories = tryAll(t, &c, states[name], histories, pause, last, seen)
				}
				c.add("states", len(seen))
			})
		}
	}
	c.report(t)
}

// tryAll tries each history with one more step, and returns those that led to new states. Only the
// last step is divided among the shards: what comes before leads to it.
func tryAll(
	t *testing.T, c *cases, state []step, histories [][]step, pause time.Duration,
	last bool, seen map[string]bool,
) (longer [][]step) {
	for _, history := range histories {
		for _, move := range moves {
			history := append(slices.Clip(history), move)
			var names []string
			for _, s := range history {
				names = append(names, fmt.Sprintf("%s %s %s %d", s.action, s.foo, s.name, s.replicas))
			}
			name := strings.ReplaceAll(strings.Join(names, ", "), " ", "-")
			c.run(t, name, last, func(t *testing.T) {
				end, problems := try(t, state, history, pause)
				expectNone(t, "after "+fmt.Sprint(history), problems)
				if !seen[end] {
					seen[end] = true
					longer = append(longer, history)
				}
			})
		}
	}
	return longer
}

// try runs a history, and returns the state after it, and what is wrong when everything is quiet.
func try(
	t *testing.T, state, history []step, pause time.Duration,
) (end string, problems []string) {
	t.Helper()
	bubble(t, func(_ *testing.T, h *harness) {
		w := newWorld(h)
		w.start()
		w.play(state)
		for _, s := range history {
			actions[s.action](w, s)
			time.Sleep(pause)
		}
		end = w.fingerprint()
		w.settle()
		problems = w.problems(idle())
	})
	return end, problems
}

// fingerprint returns a text that is the same for worlds that look the same.
func (w *world) fingerprint() string {
	var parts []string
	for _, foo := range w.foos() {
		replicas := "absent"
		if foo.Spec.Replicas != nil {
			replicas = fmt.Sprint(*foo.Spec.Replicas)
		}
		parts = append(parts, fmt.Sprint(foo.Name, foo.Spec.DeploymentName, replicas,
			foo.DeletionTimestamp != nil, len(foo.Finalizers), ready(foo), foo.Status.Replicas,
			foo.Status.ObservedGeneration == foo.Generation))
	}
	for _, d := range w.deployments() {
		owner := "nobody"
		if live := w.ownerOf(&d); live != nil {
			owner = live.Name
		} else if metav1.GetControllerOf(&d) != nil {
			owner = "gone"
		}
		replicas := ""
		if d.Spec.Replicas != nil {
			replicas = fmt.Sprint(*d.Spec.Replicas)
		}
		parts = append(parts, fmt.Sprint(d.Name, owner, d.Labels, d.Annotations, replicas,
			d.Spec.Paused, d.DeletionTimestamp != nil, d.Status.Replicas))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return fmt.Sprint(parts, w.faults, w.refused, w.going, w.lost, w.held)
}
