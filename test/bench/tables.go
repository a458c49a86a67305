package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// column is a column of a table that has a row for each contender.
type column struct {
	title  string
	mode   string
	figure string
	format string
	// relative is the contender to which a ratio is given, if any.
	relative string
}

// cell returns the text for a contender.
func (c column) cell(r *Results, contender string, foos int) string {
	value, ok := r.median(contender, c.mode, foos, c.figure)
	if !ok {
		return ""
	}
	text := fmt.Sprintf(c.format, value)
	if c.relative == "" || c.relative == contender {
		return text
	}
	if base, ok := r.median(c.relative, c.mode, foos, c.figure); ok && base > 0 {
		text += fmt.Sprintf(" (%.2f ×)", value/base)
	}
	return text
}

// newTable returns a table in Markdown that has only its head.
func newTable(heads []string) *strings.Builder {
	t := &strings.Builder{}
	fmt.Fprint(t, "|")
	for _, head := range heads {
		if head != "" {
			head += " "
		}
		fmt.Fprintf(t, " %s|", head)
	}
	fmt.Fprintf(t, "\n|%s\n", strings.Repeat("---|", len(heads)))
	return t
}

func titles(columns []column) (titles []string) {
	for _, c := range columns {
		titles = append(titles, c.title)
	}
	return titles
}

// table returns a table in Markdown with a row for each contender, references only if asked for.
func (r *Results) table(references bool, columns []column) string {
	t := newTable(append([]string{""}, titles(columns)...))
	for _, contender := range contenders {
		if contender.isReference() && !references {
			continue
		}
		row, empty := "| "+contender.title+" |", true
		for _, c := range columns {
			cell := c.cell(r, contender.id, 0)
			row += " " + cell + " |"
			empty = empty && cell == ""
		}
		if !empty {
			fmt.Fprintln(t, row)
		}
	}
	return t.String()
}

// cost returns the columns that come first: CPU time and requests, which noise affects least.
func cost(mode string) []column {
	return []column{
		{title: "CPU per Foo", mode: mode, figure: "burst/cpu ms per Foo/controller",
			format: "%.2f ms", relative: this},
		{title: "CPU per Foo of API server and etcd", mode: mode,
			figure: "burst/cpu ms per Foo/servers", format: "%.1f ms", relative: this},
		{title: "requests per Foo", mode: mode, figure: "burst/requests per Foo", format: "%.2f"},
		{title: "memory per Foo", mode: mode, figure: "memory/KiB per Foo",
			format: "%.1f KiB", relative: this},
		{title: "syncs per Foo", mode: mode, figure: "burst/syncs per Foo", format: "%.2f"},
		{title: "requests while idle", mode: mode, figure: "idle/requests", format: "%.0f"},
	}
}

func rates(phase, mode string) []column {
	columns := []column{
		{title: "Deployments per second", mode: mode, figure: phase + "/Deployments per second",
			format: "%.0f", relative: plainCreates},
		{title: "writes per second meanwhile", mode: mode,
			figure: phase + "/writes per second until then", format: "%.0f", relative: plainCreates},
	}
	if mode != modeWorking { // at work, the last write waits for the other controllers
		columns = append(columns, column{title: "Foos per second, all written", mode: mode,
			figure: phase + "/Foos per second", format: "%.0f", relative: sameWrites})
	}
	return columns
}

func latencies(phase, mode string) []column {
	columns := []column{
		{title: "Foo to Deployment, p50", mode: mode, figure: phase + "/to Deployment ms p50",
			format: "%.1f ms", relative: plainCreates},
		{title: "p99", mode: mode, figure: phase + "/to Deployment ms p99", format: "%.1f ms"},
	}
	if mode == modeWorking {
		columns = append(columns,
			column{title: "Foo to Ready, p50", mode: mode, figure: phase + "/to Ready ms p50",
				format: "%.0f ms"},
			column{title: "p99", mode: mode, figure: phase + "/to Ready ms p99", format: "%.0f ms"})
	}
	return columns
}

var restart = []column{
	{title: "to the first new Deployment", mode: modePaused, figure: "restart/seconds",
		format: "%.2f s", relative: this},
	{title: "reads", mode: modePaused, figure: "restart/reads", format: "%.0f"},
	{title: "needless writes", mode: modePaused, figure: "restart/needless writes", format: "%.0f"},
	{title: "CPU", mode: modePaused, figure: "restart/cpu ms per Foo/controller", format: "%.0f ms",
		relative: this},
}

// requestTable lists the requests for each object by verb and resource.
func (r *Results) requestTable(prefix string, ids ...string) string {
	heads := []string{""}
	kinds := map[string]bool{}
	for _, id := range ids {
		heads = append(heads, find(id).title)
		for _, run := range r.repetitions(id, modeWorking, 0) {
			for figure := range run.Figures {
				if kind, ok := strings.CutPrefix(figure, prefix); ok {
					kinds[kind] = true
				}
			}
		}
	}
	t := newTable(heads)
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		fmt.Fprintf(t, "| %s |", kind)
		for _, id := range ids {
			value, _ := r.median(id, modeWorking, 0, prefix+kind)
			fmt.Fprintf(t, " %.2f |", value)
		}
		fmt.Fprintln(t)
	}
	return t.String()
}

// growth lists what a Foo costs, by the number of Foos.
func (r *Results) growth() string {
	columns := []column{
		{title: "CPU per Foo", mode: modePaused, figure: "burst/cpu ms per Foo/controller",
			format: "%.2f ms"},
		{title: "at work", mode: modeWorking, figure: "burst/cpu ms per Foo/controller",
			format: "%.2f ms"},
		{title: "requests per Foo", mode: modePaused, figure: "burst/requests per Foo",
			format: "%.2f"},
		{title: "at work", mode: modeWorking, figure: "burst/requests per Foo", format: "%.2f"},
		{title: "memory per Foo", mode: modePaused, figure: "memory/KiB per Foo",
			format: "%.1f KiB"},
		{title: "Deployments per second", mode: modePaused, figure: "burst/Deployments per second",
			format: "%.0f"},
		{title: "Foo to Deployment, p50", mode: modePaused, figure: "steady/to Deployment ms p50",
			format: "%.1f ms"},
		{title: "restart", mode: modePaused, figure: "restart/seconds", format: "%.2f s"},
		{title: "needless writes", mode: modePaused, figure: "restart/needless writes",
			format: "%.0f"},
		{title: "requests while idle", mode: modePaused, figure: "idle/requests", format: "%.0f"},
	}
	columns = slices.DeleteFunc(columns, func(c column) bool {
		return len(r.repetitions(this, c.mode, 0)) == 0 // not measured in that mode
	})
	t := newTable(append([]string{"", "Foos"}, titles(columns)...))
	for _, contender := range contenders {
		if contender.isReference() || contender.defaults {
			continue
		}
		for _, foos := range r.sizes() {
			fmt.Fprintf(t, "| %s | %d |", contender.title, foos)
			for _, c := range columns {
				fmt.Fprintf(t, " %s |", c.cell(r, contender.id, foos))
			}
			fmt.Fprintln(t)
		}
	}
	return t.String()
}

// machine says what the figures were measured on.
func (r *Results) machine() string {
	repetitions := len(r.repetitions(this, r.Runs[len(r.Runs)-1].Mode, 0))
	return fmt.Sprintf("Measured on %s, on %d × %s, with %s and Kubernetes %s; medians of %d.\n",
		r.Date, r.CPUs, r.CPU, r.Go, r.Kubernetes, repetitions)
}

// report returns what is printed after a measurement.
func (r *Results) report() string {
	t := &strings.Builder{}
	fmt.Fprintln(t, r.machine())
	for _, name := range []string{
		"cost-paused", "cost-working", "burst-paused", "burst-working", "backlog", "backlog-apart",
		"latency-paused", "latency-working", "requests", "restart",
	} {
		fmt.Fprintf(t, "%s\n\n%s\n", name, tables[name](r))
	}
	if len(r.sizes()) > 1 {
		fmt.Fprintf(t, "growth\n\n%s\n", r.growth())
	}
	return t.String()
}

// tables are the tables that a page can show, by name.
var tables = map[string]func(*Results) string{
	"machine":         (*Results).machine,
	"cost-paused":     func(r *Results) string { return r.table(false, cost(modePaused)) },
	"cost-working":    func(r *Results) string { return r.table(false, cost(modeWorking)) },
	"burst-paused":    func(r *Results) string { return r.table(true, rates("burst", modePaused)) },
	"burst-working":   func(r *Results) string { return r.table(true, rates("burst", modeWorking)) },
	"backlog":         func(r *Results) string { return r.table(true, rates("backlog", modePaused)) },
	"backlog-apart":   func(r *Results) string { return r.table(true, rates("backlog", modeApart)) },
	"latency-paused":  func(r *Results) string { return r.table(true, latencies("steady", modePaused)) },
	"latency-working": func(r *Results) string { return r.table(true, latencies("steady", modeWorking)) },
	"latency-burst":   func(r *Results) string { return r.table(true, latencies("burst", modeWorking)) },
	"requests": func(r *Results) string {
		return r.requestTable("burst/requests per Foo/", append([]string{this}, frameworks...)...)
	},
	"restart":          func(r *Results) string { return r.table(false, restart) },
	"growth":           (*Results).growth,
	"website-machine":  (*Results).websiteMachine,
	"website-cost":     func(r *Results) string { return r.table(false, websiteCost) },
	"website-requests": (*Results).websiteRequests,
}
