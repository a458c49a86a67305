package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const update = "'go -C test/bench run . -draw' updates it"

func readAll(t *testing.T) (text string, short, long, websites *Results) {
	t.Helper()
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if short, err = readResults(shortRun); err != nil {
		t.Fatal(err)
	}
	if long, err = readResults(longRun); err != nil {
		t.Fatal(err)
	}
	if websites, err = readResults(websiteRun); err != nil {
		t.Fatal(err)
	}
	return string(content), short, long, websites
}

func TestPageShowsTheFigures(t *testing.T) {
	text, short, long, websites := readAll(t)
	want, err := fill(text, short, long, websites)
	if err != nil {
		t.Fatal(err)
	}
	if text != want {
		t.Errorf("the tables of %s are not those of the results; %s", page, update)
	}
	if marks := strings.Count(text, "<!-- bench:"); marks != len(marked.FindAllString(text, -1)) {
		t.Errorf("one of the %d marks does not match %s", marks, marked)
	}
}

func TestPlotsShowTheFigures(t *testing.T) {
	text, short, long, _ := readAll(t)
	dir := t.TempDir()
	for name, chart := range plots(short, long) {
		file := name + ".svg"
		if !strings.Contains(text, "/"+file) {
			t.Errorf("the page does not show %s", file)
		}
		if err := chart.write(filepath.Join(dir, file)); err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(plotFolder, file))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what the results give; %s (%v)", file, update, err)
		}
	}
}

func TestUnknownTableIsAnError(t *testing.T) {
	const text = "<!-- bench: short nothing -->\n<!-- end of bench -->"
	if _, err := fill(text, nil, nil, nil); err == nil {
		t.Error("an unknown table gives no error")
	}
}

func TestTargetsAreComparedWithinRepetitions(t *testing.T) {
	run := func(contender string, repetition int, value float64) Result {
		return Result{Contender: contender, Mode: modePaused, Foos: 10, Repetition: repetition,
			Figures: map[string]float64{"burst/Foos per second": value}}
	}
	results := &Results{Runs: []Result{ // the machine slows down
		run(this, 1, 100), run("lasso", 1, 100), run("controller-runtime", 1, 50),
		run("controller-runtime", 2, 30), run("lasso", 2, 50), run(this, 2, 60),
		run("lasso", 3, 10), run(this, 3, 9), run("controller-runtime", 3, 12),
	}}
	want := "burst: ≥ both frameworks' | 1.00 × Lasso (0.90 to 1.20) | met |"
	if got := targets(results, results); !strings.Contains(got, want) {
		t.Errorf("there is no %q in\n%s", want, got)
	}
	for _, test := range []struct {
		ratios []float64
		want   float64
	}{{[]float64{1}, 1}, {[]float64{1, 2}, 1.5}, {[]float64{1, 2, 9}, 2}} {
		if got := (comparison{ratios: test.ratios}).median(); got != test.want {
			t.Errorf("median of %v: got %v, want %v", test.ratios, got, test.want)
		}
	}
}

func TestTargetsAreComparedWithTheBetterFramework(t *testing.T) {
	run := func(contender string, foos int, value float64) Result {
		return Result{Contender: contender, Mode: modePaused, Foos: foos,
			Figures: map[string]float64{"burst/Foos per second": value, "memory/KiB per Foo": 1 / value}}
	}
	results := &Results{Runs: []Result{
		run(this, 10, 90), run("lasso", 10, 50), run("controller-runtime", 10, 100),
		run(this, 20, 120), run("lasso", 20, 60), run("controller-runtime", 20, 24),
	}}
	got := targets(results, results)
	for _, want := range []string{
		"burst: ≥ both frameworks' | 0.90 × controller-runtime | **missed** |",
		"memory for each of 20 Foos: ≤ 0.6 × both frameworks' | 0.50 × Lasso | met |",
		"memory for each of 20 Foos: ≤ 1.1 × that with 10 | 0.75 × | met |",
		"backlog: ≥ both frameworks' |  | not measured |",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %q in\n%s", want, got)
		}
	}
}
