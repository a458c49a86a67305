package main

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/setting"
	"example.com/sample-controller/internal/testing/suite/audit"
)

// TestRunsMeasureWhatThePageShows does real runs of each kind.
func TestRunsMeasureWhatThePageShows(t *testing.T) {
	setting.Long(t)
	build := exec.Command("go", "build", "-o", root+"/.local/bin/examples/", "../controller-runtime", "../lasso")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	o := options{foos: 10, modes: modes, repetitions: 1, idleTime: time.Second}
	results := must.Get(o.measure(t.Context()))(t)
	if got, want := len(results.Runs), len(modes)*len(contenders); got != want {
		t.Errorf("got %d runs, want %d", got, want)
	}
	for _, run := range results.Runs {
		for figure, want := range map[string]float64{
			"burst/requests per Foo/create deployments": 1,
			"restart/needless writes":                   0,
			"idle/requests":                             0,
		} {
			if got, ok := run.Figures[figure]; !ok || got != want {
				t.Errorf("%s, %s: %s is %v, want %v", run.Contender, run.Mode, figure, got, want)
			}
		}
		for _, figure := range []string{
			"burst/Deployments per second", "duel/to Deployment ms p50", "duel/to Deployment ms p99",
			"burst/cpu ms per Foo/kube-apiserver", "burst/requests per Foo/update foos/status",
			"restart/seconds", "restart/reads",
		} {
			if !(run.Figures[figure] > 0) {
				t.Errorf("%s, %s: %s is not more than 0", run.Contender, run.Mode, figure)
			}
		}
	}
}

// requestAt returns a request that was received at that second and answered a second later.
func requestAt(second int, user, verb, resource, name string) audit.Request {
	r := audit.Request{Verb: verb}
	r.RequestReceivedTimestamp = time.Date(2026, 1, 1, 0, 0, second, 0, time.UTC)
	r.StageTimestamp = r.RequestReceivedTimestamp.Add(time.Second)
	r.ImpersonatedUser.Username = user
	r.ObjectRef.Resource, r.ObjectRef.Subresource, _ = strings.Cut(resource, "/")
	r.ObjectRef.Name = name
	r.ResponseStatus.Code = 201
	return r
}

func TestFiguresComeFromTheTimesOfTheRequests(t *testing.T) {
	requests := []audit.Request{
		requestAt(0, loadUser, "create", "foos", "a"),
		requestAt(1, loadUser, "create", "foos", "b"),
		requestAt(3, "me", "create", "deployments", "a"),
		requestAt(3, "me", "create", "events", "a.1"),
		requestAt(7, "me", "create", "deployments", "b"),
		requestAt(8, "me", "update", "foos/status", "a"),
		requestAt(9, "me", "update", "foos/status", "b"),
		requestAt(15, "me", "update", "foos/status", "a"),
	}
	r := &run{user: "me", mode: modeWorking, figures: map[string]float64{}}
	r.recordRates(requests)
	r.recordLatencies(requests)
	want := map[string]float64{
		"burst/Deployments per second": 2.0 / 8,
		"duel/to Deployment ms p50":    (3000 + 6000) / 2,
		"duel/to Deployment ms p99":    5970,
		"duel/to Ready ms p50":         (8000 + 15000) / 2,
		"duel/to Ready ms p99":         14930,
	}
	if !maps.Equal(r.figures, want) {
		t.Errorf("got %v, want %v", r.figures, want)
	}
	r.mode = modePaused
	r.recordRates(requests)
	if got := r.figures["burst/Foos per second"]; got != 2.0/16 {
		t.Errorf("got %v Foos per second, want %v", got, 2.0/16)
	}
}

func TestTableShowsMediansAndRatios(t *testing.T) {
	run := func(contender, mode string, value float64) Result {
		return Result{Contender: contender, Mode: mode, Figures: map[string]float64{"x": value}}
	}
	results := &Results{Runs: []Result{
		run(this, modePaused, 3), run(this, modePaused, 4), run(this, modePaused, 900),
		run("lasso", modePaused, 8), run("lasso", modeWorking, 5),
	}}
	const want = `| | | X |
|---|---|---|
| paused | this controller | 4.0 ms |
| paused | controller-runtime | |
| paused | Lasso | 8.0 ms (2.00 ×) |
| at work | this controller | |
| at work | controller-runtime | |
| at work | Lasso | 5.0 ms |
`
	if got := results.table([]column{{"X", "x", "%.1f ms", true}}); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}

func TestContendersTakeTurns(t *testing.T) {
	o := options{foos: 100, modes: []string{modePaused}, repetitions: 2}
	var got []string
	for _, run := range o.plan() {
		got = append(got, fmt.Sprint(run.Contender, " ", run.Foos, " ", run.Repetition))
	}
	want := []string{"this 100 0", "this 100 1", "controller-runtime 100 1", "lasso 100 1",
		"lasso 100 2", "controller-runtime 100 2", "this 100 2"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPageShowsTheFigures(t *testing.T) {
	text := must.Get(os.ReadFile(page))(t)
	want := must.Get(fill(string(text)))(t)
	if string(text) != want {
		t.Errorf("the tables of %s are not those of the results; 'go -C examples/bench run . -draw' "+
			"updates it", page)
	}
	if n := strings.Count(want, "<!-- bench:"); n != len(marked.FindAllString(want, -1)) {
		t.Errorf("one of the %d marks does not match %s", n, marked)
	}
}
