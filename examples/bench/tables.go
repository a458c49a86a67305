package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

// column is a column of a table that has a row for each contender.
type column struct {
	title    string
	figure   string
	format   string
	relative bool // to this controller
}

// The columns of each table. CPU time and requests come first: noise affects them least.
var (
	cost = []column{
		{"CPU per Foo", "burst/cpu ms per Foo/controller", "%.2f ms", true},
		{"CPU per Foo of API server and etcd", "burst/cpu ms per Foo/servers", "%.1f ms", true},
		{"requests per Foo", "burst/requests per Foo", "%.2f", false},
		{"memory per Foo", "memory/KiB per Foo", "%.1f KiB", true},
		{"requests while idle", "idle/requests", "%.0f", false},
	}
	speed = []column{
		{"Deployments per second", "burst/Deployments per second", "%.0f", true},
		{"Foos per second, all written", "burst/Foos per second", "%.0f", true},
		{"Foo to Deployment, p50", "duel/to Deployment ms p50", "%.1f ms", true},
		{"p99", "duel/to Deployment ms p99", "%.1f ms", false},
		{"Foo to Ready, p50", "duel/to Ready ms p50", "%.0f ms", false},
		{"p99", "duel/to Ready ms p99", "%.0f ms", false},
	}
	restart = []column{
		{"to the first new Deployment", "restart/seconds", "%.2f s", true},
		{"reads", "restart/reads", "%.0f", false},
		{"needless writes", "restart/needless writes", "%.0f", false},
		{"CPU", "restart/cpu ms per Foo/controller", "%.0f ms", true},
	}
)

// tables are the tables that the page can show, by name.
var tables = map[string]func(*Results) string{
	"machine": (*Results).machine,
	"cost":    func(r *Results) string { return r.table(cost) },
	"speed":   func(r *Results) string { return r.table(speed) },
	"restart": func(r *Results) string { return r.table(restart) },
}

// machine says what the figures were measured on.
func (r *Results) machine() string {
	repetitions := len(r.repetitions(this, r.Runs[0].Mode))
	return fmt.Sprintf("Measured on %s, on %d × %s, with %s and Kubernetes %s; medians of %d.\n",
		r.Date, r.CPUs, r.CPU, r.Go, r.Kubernetes, repetitions)
}

// shown are the modes in the order of the page, with their names there.
var shown = []struct{ mode, title string }{{modePaused, "paused"}, {modeWorking, "at work"}}

// table returns a table in Markdown with a row for each contender in each mode.
func (r *Results) table(columns []column) string {
	heads := []string{"", ""}
	for _, c := range columns {
		heads = append(heads, c.title)
	}
	rows := [][]string{heads}
	for _, s := range shown {
		for _, contender := range contenders {
			row := []string{s.title, contender.title}
			for _, c := range columns {
				row = append(row, c.cell(r, contender.id, s.mode))
			}
			rows = append(rows, row)
		}
	}
	return markdown(rows)
}

// cell returns the text for a contender. What was not measured in a mode has an empty one.
func (c column) cell(r *Results, contender, mode string) string {
	value, ok := r.median(contender, mode, c.figure)
	if !ok {
		return ""
	}
	text := fmt.Sprintf(c.format, value)
	base, _ := r.median(this, mode, c.figure)
	if c.relative && contender != this && base > 0 {
		text += fmt.Sprintf(" (%.2f ×)", value/base)
	}
	return text
}

// markdown returns a table whose first row is its head.
func markdown(rows [][]string) string {
	var t strings.Builder
	for i, row := range rows {
		line := "| " + strings.Join(row, " | ") + " |"
		fmt.Fprintln(&t, strings.ReplaceAll(line, "|  ", "| "))
		if i == 0 {
			fmt.Fprintf(&t, "|%s\n", strings.Repeat("---|", len(row)))
		}
	}
	return t.String()
}

// workers is how many workers a contender has.
const workers = "16"

// this is the ID of this repository's controller.
const this = "this"

// A contender is a controller that is measured.
type contender struct {
	id      string // in the results
	title   string // in tables
	program string // in .local/bin
}

// namespace returns where the Foos of the contender are.
func (c contender) namespace() string { return "bench-" + c.id }

var contenders = []contender{
	{id: this, title: "this controller", program: "sample-controller"},
	{id: "controller-runtime", title: "controller-runtime", program: "examples/controller-runtime"},
	{id: "lasso", title: "Lasso", program: "examples/lasso"},
}

const page = root + "/docs/performance.md"

// marked matches the tables of the page, with the marks around them, which name the table:
// "<!-- bench: cost -->" and "<!-- end of bench -->".
var marked = regexp.MustCompile(
	`(?s)(<!-- bench: ([a-z]+) -->\n).*?(<!-- end of bench -->)`)

// fill returns the text of a page with the tables of the results.
func fill(text string) (filled string, err error) {
	results, err := readResults()
	if err != nil {
		return "", err
	}
	filled = marked.ReplaceAllStringFunc(text, func(place string) string {
		parts := marked.FindStringSubmatch(place)
		render := tables[parts[2]]
		if render == nil {
			err = fmt.Errorf("there is no table %q", parts[2])
			return place
		}
		return parts[1] + render(results) + parts[3]
	})
	return filled, err
}

// draw writes the tables of the page, from the files of results.
func draw() error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	filled, err := fill(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	return os.WriteFile(page, []byte(filled), 0o644)
}
