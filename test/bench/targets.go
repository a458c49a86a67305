package main

import (
	"cmp"
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
			short.compare(mode, "burst/cpu ms per Foo/controller", frameworks...), 0.8)
	}
	const servers = "burst/cpu ms per Foo/servers"
	t.atMost("CPU per Foo of API server and etcd, paused: ≤ 1.05 × the same writes, watched",
		short.compare(modePaused, servers, sameWrites), 1.05)
	t.atMost("the same: ≤ both frameworks'",
		short.compare(modePaused, servers, frameworks...), 1)
	for _, phase := range []string{"backlog", "burst"} {
		t.atLeast("Foos per second, all written, "+phase+": ≥ both frameworks'",
			short.compare(modePaused, phase+"/Foos per second", frameworks...), 1)
	}
	t.atLeast("Deployments per second of a backlog, apart: ≥ 0.9 × plain Creates, watched",
		short.compare(modeApart, "backlog/Deployments per second", watchedCreates), 0.9)
	t.atMost("apart, the controller's CPU per Foo: ≤ 0.8 × the better framework's",
		short.compare(modeApart, "backlog/cpu ms per Foo/controller", frameworks...), 0.8)
	t.atMost("apart, CPU per Foo of API server and etcd: ≤ both frameworks'",
		short.compare(modeApart, "backlog/cpu ms per Foo/servers", frameworks...), 1)
	t.atLeast("apart, Foos per second, all written: ≥ both frameworks'",
		short.compare(modeApart, "backlog/Foos per second", frameworks...), 1)
	const latency = "steady/to Deployment ms "
	t.atMost("p50 from Foo to Deployment: ≤ 1.15 × that of a plain Create",
		short.compare(modePaused, latency+"p50", plainCreates), 1.15)
	for _, part := range []string{"p50", "p99"} {
		t.atMost(part+" from Foo to Deployment: ≤ both frameworks'",
			short.compare(modePaused, latency+part, frameworks...), 1)
	}
	const memory = "memory/KiB per Foo"
	few, many := long.sizes()[0], long.largest()
	t.atMost(fmt.Sprintf("memory for each of %d Foos: ≤ 0.6 × both frameworks'", many),
		long.of(many).compare(modePaused, memory, frameworks...), 0.6)
	for _, flat := range []struct{ name, figure string }{
		{"CPU", "burst/cpu ms per Foo/controller"}, {"memory", memory},
	} {
		t.atMost(fmt.Sprintf("%s for each of %d Foos: ≤ 1.1 × that with %d", flat.name, many, few),
			[]comparison{{ratios: []float64{long.of(many).value(this, modePaused, flat.figure) /
				long.of(few).value(this, modePaused, flat.figure)}}}, 1.1)
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

func (t *targetTable) atMost(goal string, comparisons []comparison, bound float64) {
	t.compared(goal, comparisons, slices.MaxFunc, func(v float64) bool { return v <= bound })
}

func (t *targetTable) atLeast(goal string, comparisons []comparison, bound float64) {
	t.compared(goal, comparisons, slices.MinFunc, func(v float64) bool { return v >= bound })
}

// compared adds a row with the comparison that is the worst for this controller: its median, which
// decides, and its range.
func (t *targetTable) compared(
	goal string, comparisons []comparison,
	worst func([]comparison, func(a, b comparison) int) comparison, met func(float64) bool,
) {
	if slices.ContainsFunc(comparisons, func(c comparison) bool { return len(c.ratios) == 0 }) {
		t.row(goal, "", math.NaN(), met)
		return
	}
	c := worst(comparisons, func(a, b comparison) int { return cmp.Compare(a.median(), b.median()) })
	format := "%.2f ×"
	if len(comparisons) > 1 {
		format += " " + find(c.other).title
	}
	if last := len(c.ratios) - 1; last > 0 {
		format += fmt.Sprintf(" (%.2f to %.2f)", c.ratios[0], c.ratios[last])
	}
	t.row(goal, format, c.median(), met)
}

// comparison is a figure of this controller as a multiple of another contender's.
type comparison struct {
	other  string
	ratios []float64 // one for each repetition, sorted
}

// median returns the middle ratio, or the mean of the two in the middle.
func (c comparison) median() float64 {
	n := len(c.ratios)
	return (c.ratios[(n-1)/2] + c.ratios[n/2]) / 2
}

// compare compares a figure with that of others. A ratio is of two figures of one repetition: these
// were measured within minutes, so a machine that becomes faster or slower changes little.
func (r *Results) compare(mode, figure string, others ...string) (comparisons []comparison) {
	for _, other := range others {
		c := comparison{other: other}
		for _, theirs := range r.repetitions(other, mode, 0) {
			for _, ours := range r.repetitions(this, mode, 0) {
				value, measured := ours.Figures[figure]
				base, baseMeasured := theirs.Figures[figure]
				if ours.Repetition == theirs.Repetition && measured && baseMeasured {
					c.ratios = append(c.ratios, value/base)
				}
			}
		}
		slices.Sort(c.ratios)
		comparisons = append(comparisons, c)
	}
	return comparisons
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
