package main

import (
	"fmt"
	"math"
)

// targets returns what this controller is to reach, with what was measured.
func targets(short, long *Results) string {
	t := newTable([]string{"target", "measured", ""})
	row := func(goal, format string, value float64, met bool) {
		verdict := "met"
		switch {
		case math.IsNaN(value):
			verdict = "not measured"
		case !met:
			verdict = "**missed**"
		}
		fmt.Fprintf(t, "| %s | "+format+" | %s |\n", goal, value, verdict)
	}
	atLeast := func(goal string, value, bound float64) { row(goal, "%.2f ×", value, value >= bound) }
	atMost := func(goal, format string, value, bound float64) { row(goal, format, value, value <= bound) }

	const perSecond = "/Deployments per second"
	atLeast("a backlog of 1,000 Foos: Deployments at ≥ 0.9 × the rate of plain Creates",
		short.ratio(modePaused, "backlog"+perSecond, plainCreates), 0.9)
	atLeast("the same while the Foos are being made",
		short.ratio(modePaused, "burst"+perSecond, plainCreates), 0.9)
	for _, framework := range frameworks {
		for _, phase := range []string{"backlog", "burst"} {
			atLeast(fmt.Sprintf("faster than %s, %s", find(framework).title, phase),
				short.ratio(modePaused, phase+perSecond, framework), 1)
		}
	}
	requests := short.value(this, modeWorking, "burst/requests per Foo")
	atMost("requests for each Foo until it is Ready: ≤ 5", "%.2f", requests, 5)
	idle := short.value(this, modeWorking, "idle/requests")
	atMost("requests while nothing happens: none", "%.0f", idle, 0)
	atMost("p50 from Foo to Deployment: ≤ 1.5 × that of one plain Create", "%.2f ×",
		short.ratio(modePaused, "steady/to Deployment ms p50", plainCreates), 1.5)
	few, many := long.sizes()[0], long.largest()
	memory := func(contender string, foos int) float64 {
		return long.valueWith(contender, modePaused, foos, "memory/KiB per Foo")
	}
	for _, framework := range frameworks {
		ratio := memory(this, many) / memory(framework, many)
		row(fmt.Sprintf("less memory for each of %d Foos than %s", many, find(framework).title),
			"%.2f ×", ratio, ratio < 1)
	}
	flat := fmt.Sprintf(" for each of %d Foos: ≤ 1.1 × that with %d", many, few)
	const cpu = "burst/cpu ms per Foo/controller"
	atMost("CPU time"+flat, "%.2f ×", long.valueWith(this, modePaused, many, cpu)/
		long.valueWith(this, modePaused, few, cpu), 1.1)
	atMost("memory"+flat, "%.2f ×", memory(this, many)/memory(this, few), 1.1)
	return t.String()
}

// ratio returns a figure of this controller as a multiple of another contender's.
func (r *Results) ratio(mode, figure, other string) float64 {
	return r.value(this, mode, figure) / r.value(other, mode, figure)
}

// value returns a figure with the smallest number of Foos, or NaN if it was not measured.
func (r *Results) value(contender, mode, figure string) float64 {
	return r.valueWith(contender, mode, 0, figure)
}

// valueWith returns a figure with that many Foos.
func (r *Results) valueWith(contender, mode string, foos int, figure string) float64 {
	if value, ok := r.median(contender, mode, foos, figure); ok {
		return value
	}
	return math.NaN()
}

// largest returns the largest number of Foos that was measured.
func (r *Results) largest() int {
	sizes := r.sizes()
	return sizes[len(sizes)-1]
}
