//go:build histories

package main

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// steps generates random steps.
var steps = rapid.Custom(func(t *rapid.T) step {
	return step{
		action:   rapid.SampledFrom(slices.Sorted(maps.Keys(actions))).Draw(t, "action"),
		foo:      rapid.SampledFrom(fooNames).Draw(t, "foo"),
		name:     rapid.SampledFrom(deploymentNames).Draw(t, "name"),
		replicas: rapid.Int32Range(-1, 3).Draw(t, "replicas"),
		times:    rapid.IntRange(1, 5).Draw(t, "times"),
		pause: rapid.SampledFrom([]time.Duration{
			0, time.Microsecond, time.Millisecond, 50 * time.Millisecond, 2 * time.Second, time.Minute,
		}).Draw(t, "pause"),
	}
})

// TestRandomHistories runs random steps and lets the world settle. Then every Foo must have exactly
// its Deployment, every status must be correct, and nothing more may be written.
func TestRandomHistories(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		history := rapid.SliceOfN(steps, 1, 25).Draw(rt, "history")
		var problems []string
		bubble(t, func(_ *testing.T, h *harness) {
			w := newWorld(h)
			w.start()
			for _, step := range history {
				actions[step.action](w, step)
				time.Sleep(step.pause)
			}
			w.settle()
			problems = w.problems(time.Hour)
		})
		if len(problems) > 0 {
			rt.Fatalf("after %v\n%s", history, strings.Join(problems, "\n"))
		}
	})
}
