package explore

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"
)

// lag is a restart after which the API server shows an older state.
type lag struct {
	step        int              // after which the process is killed
	past        map[string]int64 // by resource, the revision that the API server has seen
	untilTheEnd bool             // and not only until the next step has happened
}

// lags restarts the controller after each step of a scenario, with an API server that lags: what it
// lists is an older state of one resource, or of all. It catches up one step later, or in the end.
// Without -explore.every, it takes only the latter, and only the scenarios in which the controller
// deletes something: elsewhere, an old state makes it do less harm.
//
// The API server has no streams, as if its feature WatchList were off: a stream waits until it
// shows the newest state.
func (x *explorer) lags(t *testing.T, c *cases, s *Scenario, calm *result) {
	deletes := false
	for _, n := range calm.written {
		deletes = deletes || n.deleted > 0
	}
	if !*every && !deletes {
		return
	}
	for step := range s.steps() {
		revisions := calm.history[step]
		for behind := 1; ; behind++ {
			all := map[string]int64{}
			for _, resource := range slices.Sorted(maps.Keys(revisions)) {
				if n := len(revisions[resource]); behind <= n && calm.watches(resource) {
					all[resource] = revisionBefore(revisions[resource], behind)
				}
			}
			if len(all) == 0 {
				break
			}
			x.lagBy(t, c, s, step, behind, all)
		}
	}
}

// watches reports whether the controller has watched a resource.
func (r *result) watches(resource string) bool {
	return slices.ContainsFunc(r.requests, func(request Request) bool {
		return request.Kind == "watch-"+resource
	})
}

// revisionBefore returns the revision at which so many of the last writes had not happened.
func revisionBefore(revisions []int64, writes int) int64 {
	return revisions[len(revisions)-writes] - 1
}

// lagBy lags by so many writes: of each resource, and of all.
func (x *explorer) lagBy(
	t *testing.T, c *cases, s *Scenario, step, behind int, all map[string]int64,
) {
	pasts := map[string]map[string]int64{"all": all}
	for resource, revision := range all {
		pasts[resource] = map[string]int64{resource: revision}
	}
	for _, name := range slices.Sorted(maps.Keys(pasts)) {
		name, past := fmt.Sprintf("step-%d/%s-%d-writes-behind", step+1, name, behind), pasts[name]
		if *every {
			x.lag(t, c, s, name+"-for-a-step", lag{step, past, false})
		}
		x.lag(t, c, s, name, lag{step, past, true})
	}
}

// lag runs the scenario with such a restart.
func (x *explorer) lag(t *testing.T, c *cases, s *Scenario, name string, l lag) {
	t.Helper()
	c.run(t, name, true, func(t *testing.T) {
		steps := s.steps()
		got := x.run(t, s, func(w *World) { w.server.DisableStreams() }, func(w *World) {
			w.play(steps[:l.step+1])
			w.mu.Lock()
			old := w.process
			w.past = maps.Clone(l.past)
			w.mu.Unlock()
			w.kill(old, false)
			w.start()
			time.Sleep(x.controller.Delay)
			for i, s := range steps[l.step+1:] {
				w.play([]Step{s})
				if i == 0 && !l.untilTheEnd {
					w.letWatchesGo()
					time.Sleep(x.controller.Delay)
				}
			}
		})
		fail(t, fmt.Sprintf("the lists are of the revisions %v", l.past),
			got.wrong(c.split(got.unasked)))
	})
}
