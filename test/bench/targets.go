package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// targets returns the table of targets for this controller, with what was measured.
func targets(short, long *Results) string {
	t := &targetTable{Builder: newTable([]string{"target", "measured", ""})}
	for _, mode := range []string{modePaused, modeWorking} {
		t.atMost("the controller's CPU per Foo, "+titleOf[mode]+": ≤ 0.8 × the better framework's",
			short.againstFrameworks(mode, "burst/cpu ms per Foo/controller", slices.Min), 0.8)
	}
	const servers = "burst/cpu ms per Foo/servers"
	t.atMost("CPU per Foo of API server and etcd, paused: ≤ 1.05 × the same writes, watched",
		short.ratio(modePaused, servers, sameWrites), 1.05)
	t.atMost("the same: ≤ both frameworks'",
		short.againstFrameworks(modePaused, servers, slices.Min), 1)
	for _, phase := range []string{"backlog", "burst"} {
		t.atLeast("Foos per second, all written, "+phase+": ≥ both frameworks'",
			short.againstFrameworks(modePaused, phase+"/Foos per second", slices.Max), 1)
	}
	t.atLeast("Deployments per second of a backlog, apart: ≥ 0.9 × plain Creates, watched",
		short.ratio(modeApart, "backlog/Deployments per second", watchedCreates), 0.9)
	const latency = "steady/to Deployment ms "
	t.atMost("p50 from Foo to Deployment: ≤ 1.15 × that of a plain Create",
		short.ratio(modePaused, latency+"p50", plainCreates), 1.15)
	for _, part := range []string{"p50", "p99"} {
		t.atMost(part+" from Foo to Deployment: ≤ both frameworks'",
			short.againstFrameworks(modePaused, latency+part, slices.Min), 1)
	}
	const memory = "memory/KiB per Foo"
	few, many := long.sizes()[0], long.largest()
	t.atMost(fmt.Sprintf("memory for each of %d Foos: ≤ 0.6 × both frameworks'", many),
		long.of(many).againstFrameworks(modePaused, memory, slices.Min), 0.6)
	for _, flat := range []struct{ name, figure string }{
		{"CPU", "burst/cpu ms per Foo/controller"}, {"memory", memory},
	} {
		t.atMost(fmt.Sprintf("%s for each of %d Foos: ≤ 1.1 × that with %d", flat.name, many, few),
			long.of(many).value(this, modePaused, flat.figure)/
				long.of(few).value(this, modePaused, flat.figure), 1.1)
	}
	t.row("requests while nothing happens: none", "%.0f",
		short.value(this, modeWorking, "idle/requests"), func(v float64) bool { return v == 0 })
	return t.String()
}

// titleOf says in words what a mode is.
var titleOf = map[string]string{modePaused: "paused", modeWorking: "at work"}

// targetTable is a table of targets, in Markdown.
type targetTable struct{ *strings.Builder }

func (t *targetTable) row(goal, format string, value float64, met func(float64) bool) {
	measured, verdict := fmt.Sprintf(format, value), "met"
	switch {
	case math.IsNaN(value):
		measured, verdict = "", "not measured"
	case !met(value):
		verdict = "**missed**"
	}
	fmt.Fprintf(t, "| %s | %s | %s |\n", goal, measured, verdict)
}

func (t *targetTable) atMost(goal string, value, bound float64) {
	t.row(goal, "%.2f ×", value, func(v float64) bool { return v <= bound })
}

func (t *targetTable) atLeast(goal string, value, bound float64) {
	t.row(goal, "%.2f ×", value, func(v float64) bool { return v >= bound })
}

// againstFrameworks returns a figure of this controller as a multiple of the better framework's.
// best finds the better one.
func (r *Results) againstFrameworks(mode, figure string, best func([]float64) float64) float64 {
	var values []float64
	for _, framework := range frameworks {
		values = append(values, r.value(framework, mode, figure))
	}
	return r.value(this, mode, figure) / best(values)
}

// ratio returns a figure of this controller as a multiple of another contender's.
func (r *Results) ratio(mode, figure, other string) float64 {
	return r.value(this, mode, figure) / r.value(other, mode, figure)
}

// value returns a figure with the smallest number of Foos, or NaN if it was not measured.
func (r *Results) value(contender, mode, figure string) float64 {
	if value, ok := r.median(contender, mode, 0, figure); ok {
		return value
	}
	return math.NaN()
}

// of returns the results with that many Foos.
func (r *Results) of(foos int) *Results {
	chosen := *r
	chosen.Runs = slices.DeleteFunc(slices.Clone(r.Runs), func(run Result) bool {
		return run.Foos != foos
	})
	return &chosen
}

// largest returns the largest number of Foos that was measured.
func (r *Results) largest() int {
	sizes := r.sizes()
	return sizes[len(sizes)-1]
}
