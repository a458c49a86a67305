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
			short.versus(mode, "burst/cpu ms per Foo/controller", slices.Min, frameworks...), 0.8)
	}
	const servers = "burst/cpu ms per Foo/servers"
	t.atMost("CPU per Foo of API server and etcd, paused: ≤ 1.05 × the same writes, watched",
		short.versus(modePaused, servers, slices.Min, sameWrites), 1.05)
	t.atMost("the same: ≤ both frameworks'",
		short.versus(modePaused, servers, slices.Min, frameworks...), 1)
	for _, phase := range []string{"backlog", "burst"} {
		t.atLeast("Foos per second, all written, "+phase+": ≥ both frameworks'",
			short.versus(modePaused, phase+"/Foos per second", slices.Max, frameworks...), 1)
	}
	t.atLeast("Deployments per second of a backlog, apart: ≥ 0.9 × plain Creates, watched",
		short.versus(modeApart, "backlog/Deployments per second", slices.Max, watchedCreates), 0.9)
	t.atMost("apart, the controller's CPU per Foo: ≤ 0.8 × the better framework's",
		short.versus(modeApart, "backlog/cpu ms per Foo/controller", slices.Min, frameworks...), 0.8)
	t.atMost("apart, CPU per Foo of API server and etcd: ≤ both frameworks'",
		short.versus(modeApart, "backlog/cpu ms per Foo/servers", slices.Min, frameworks...), 1)
	t.atLeast("apart, Foos per second, all written: ≥ both frameworks'",
		short.versus(modeApart, "backlog/Foos per second", slices.Max, frameworks...), 1)
	const latency = "steady/to Deployment ms "
	t.atMost("p50 from Foo to Deployment: ≤ 1.15 × that of a plain Create",
		short.versus(modePaused, latency+"p50", slices.Min, plainCreates), 1.15)
	for _, part := range []string{"p50", "p99"} {
		t.atMost(part+" from Foo to Deployment: ≤ both frameworks'",
			short.versus(modePaused, latency+part, slices.Min, frameworks...), 1)
	}
	const memory = "memory/KiB per Foo"
	few, many := long.sizes()[0], long.largest()
	t.atMost(fmt.Sprintf("memory for each of %d Foos: ≤ 0.6 × both frameworks'", many),
		long.of(many).versus(modePaused, memory, slices.Min, frameworks...), 0.6)
	for _, flat := range []struct{ name, figure string }{
		{"CPU", "burst/cpu ms per Foo/controller"}, {"memory", memory},
	} {
		t.atMost(fmt.Sprintf("%s for each of %d Foos: ≤ 1.1 × that with %d", flat.name, many, few),
			[]float64{long.of(many).value(this, modePaused, flat.figure) /
				long.of(few).value(this, modePaused, flat.figure)}, 1.1)
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

func (t *targetTable) atMost(goal string, ratios []float64, bound float64) {
	t.ratios(goal, ratios, func(v float64) bool { return v <= bound })
}

func (t *targetTable) atLeast(goal string, ratios []float64, bound float64) {
	t.ratios(goal, ratios, func(v float64) bool { return v >= bound })
}

// ratios adds a row with the median of sorted ratios, which decides, and what they range over.
func (t *targetTable) ratios(goal string, ratios []float64, met func(float64) bool) {
	median, format := math.NaN(), "%.2f ×"
	if len(ratios) > 0 {
		median = quantile(ratios, 0.5)
	}
	if last := len(ratios) - 1; last > 0 {
		format += fmt.Sprintf(" (%.2f to %.2f)", ratios[0], ratios[last])
	}
	t.row(goal, format, median, met)
}

// versus returns a figure of this controller as a multiple of that of the other contenders, of which
// best finds the one that counts: a ratio for each repetition, sorted. What is compared was measured
// within minutes, so a machine that becomes faster or slower changes little.
func (r *Results) versus(
	mode, figure string, best func([]float64) float64, others ...string,
) (ratios []float64) {
	for i, mine := range r.repetitions(this, mode, 0) {
		var values []float64
		for _, other := range others {
			if runs := r.repetitions(other, mode, 0); i < len(runs) {
				if value, ok := runs[i].Figures[figure]; ok {
					values = append(values, value)
				}
			}
		}
		if value, ok := mine.Figures[figure]; ok && len(values) == len(others) {
			ratios = append(ratios, value/best(values))
		}
	}
	slices.Sort(ratios)
	return ratios
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
