package main

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/sample-controller/internal/suite/audit"
)

var smoke = flag.Bool("smoke", false,
	"measure a few runs with ten Foos on a control plane, with the programs that make bench builds")

// TestRunsMeasureWhatThePageShows does one real run of each kind.
func TestRunsMeasureWhatThePageShows(t *testing.T) {
	if !*smoke {
		t.Skip("needs -smoke: it starts a control plane")
	}
	o, err := parseFlags([]string{"-foos=10", "-idle=1s", "-steady-foos=5", "-cluster=bench-smoke"})
	if err != nil {
		t.Fatal(err)
	}
	plan := []Result{
		{Contender: "lasso", Mode: modeWorking, Foos: 10},
		{Contender: "controller-runtime", Mode: modeWorking, Foos: 10},
		{Contender: sameWrites, Mode: modePaused, Foos: 10},
		{Contender: this, Mode: modePaused, Foos: 10},
	}
	if canSeparate() {
		plan = append(plan, Result{Contender: this, Mode: modeApart, Foos: 10})
	} else {
		t.Log("mode apart is not tested: this machine has no taskset, or only one processor")
	}
	results, err := o.measure(t.Context(), contenders, plan)
	if err != nil {
		t.Fatal(err)
	}
	frameworkDoes := map[string]float64{
		"burst/requests per Foo/create deployments": 1,
		"restart/needless writes":                   0,
	}
	want := map[string]map[string]float64{
		sameWrites + " paused": {
			"burst/requests per Foo":   3,
			"backlog/requests per Foo": 3,
		},
		"this paused": {
			"burst/requests per Foo":                    3,
			"burst/requests per Foo/create deployments": 1,
			"burst/requests per Foo/update foos/status": 1,
			"idle/requests":                             0,
			"restart/needless writes":                   0,
		},
		"this apart": {
			"backlog/requests per Foo/create deployments": 1,
			"backlog/requests per Foo/create events":      1,
			"backlog/requests per Foo/update foos/status": 1,
		},
		"lasso working":              frameworkDoes,
		"controller-runtime working": frameworkDoes,
	}
	for _, run := range results.Runs {
		for figure, value := range want[run.Contender+" "+run.Mode] {
			if got := run.Figures[figure]; got != value {
				t.Errorf("%s, %s: got %v, want %v", run.Contender, figure, got, value)
			}
		}
		for _, figure := range positive(run) {
			if !(run.Figures[figure] > 0) {
				t.Errorf("%s: %s is not more than 0: %v", run.Contender, figure, run.Figures)
			}
		}
	}
}

// TestBurstsOfWebsitesAreMeasured lets both controllers work for ten Websites.
func TestBurstsOfWebsitesAreMeasured(t *testing.T) {
	if !*smoke {
		t.Skip("needs -smoke: it starts a control plane")
	}
	o, err := parseFlags([]string{"-websites=10", "-repetitions=1", "-cluster=bench-smoke"})
	if err != nil {
		t.Fatal(err)
	}
	results, err := o.measure(t.Context(), websiteContenders, o.websitePlan())
	if err != nil {
		t.Fatal(err)
	}
	if len(results.Runs) != len(websiteContenders) {
		t.Errorf("got %d runs, want one of each controller", len(results.Runs))
	}
	for _, run := range results.Runs {
		for figure, want := range map[string]float64{
			"burst/requests per Website/create configmaps":  1,
			"burst/requests per Website/create services":    1,
			"burst/requests per Website/create deployments": 1,
			"burst/requests per Website/create events":      3,
			"burst/requests per Website/patch websites":     1,
			"burst/requests to the registry per Website":    1,
			"burst/Events lost":                             0,
		} {
			if got := run.Figures[figure]; got != want {
				t.Errorf("%s, %s: got %v, want %v", run.Contender, figure, got, want)
			}
		}
		for _, figure := range []string{
			"burst/seconds", "burst/syncs per Website", "memory/peak MiB",
			"burst/cpu ms per Website/kube-apiserver",
			"burst/requests per Website/update websites/status",
		} {
			if !(run.Figures[figure] > 0) {
				t.Errorf("%s: %s is not more than 0: %v", run.Contender, figure, run.Figures)
			}
		}
	}
}

// TestRestartsAreCompared lets each controller start once.
func TestRestartsAreCompared(t *testing.T) {
	if !*smoke {
		t.Skip("needs -smoke: it starts a control plane")
	}
	o, err := parseFlags([]string{"-foos=10", "-restarts=1", "-cluster=bench-smoke"})
	if err != nil {
		t.Fatal(err)
	}
	results, err := o.compareRestarts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(results.Runs) != 1+len(frameworks) {
		t.Errorf("got %d starts, want one of each controller", len(results.Runs))
	}
	for _, run := range results.Runs {
		if run.Figures["restart/needless writes"] != 0 || !(run.Figures["restart/seconds"] > 0) {
			t.Errorf("%s: want a Deployment and no needless write: %v", run.Contender, run.Figures)
		}
	}
}

// positive returns the figures that a run must have, and that cannot be 0.
func positive(run Result) []string {
	if run.Mode == modeApart {
		return []string{"backlog/Deployments per second", "backlog/Foos per second"}
	}
	figures := []string{
		"burst/Deployments per second", "burst/Foos per second",
		"steady/to Deployment ms p50", "steady/to Deployment ms p99",
		"burst/cpu ms per Foo/kube-apiserver",
	}
	if find(run.Contender).isReference() {
		return figures
	}
	figures = append(figures, "memory/at the start", "memory/idle",
		"restart/seconds", "restart/reads")
	if run.Contender != "lasso" {
		figures = append(figures, "burst/syncs per Foo")
	}
	if run.Mode == modePaused {
		return append(figures, "backlog/Deployments per second")
	}
	return append(figures, "steady/to Ready ms p50", "steady/to Ready ms p99")
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
		requestAt(0, "load", "create", "foos", "a"),
		requestAt(1, "load", "create", "foos", "b"),
		requestAt(3, "me", "create", "deployments", "a"),
		requestAt(3, "me", "create", "events", "a.1"),
		requestAt(7, "me", "create", "deployments", "b"),
		requestAt(8, "me", "update", "foos/status", "a"),
		requestAt(9, "me", "update", "foos/status", "b"),
		requestAt(15, "me", "update", "foos/status", "a"),
	}
	r := &run{user: "me", mode: modeWorking, contender: *find(this), figures: map[string]float64{}}
	r.recordRates("burst", requests, "load", "foos")
	r.recordLatencies("burst", requests)
	want := map[string]float64{
		"burst/Deployments per second":       2.0 / 8,
		"burst/writes per second until then": 3.0 / 8,
		"burst/Foos per second":              2.0 / 16,
		"burst/to Deployment ms p50":         6000,
		"burst/to Deployment ms p99":         6000,
		"burst/to Ready ms p50":              15000,
		"burst/to Ready ms p99":              15000,
	}
	if !maps.Equal(r.figures, want) {
		t.Errorf("got %v, want %v", r.figures, want)
	}
	curve := curveOf(requests, "me")
	if len(curve) != 100 || curve[0] != 1 || curve[99] != 5 {
		t.Errorf("got a curve of %d points from %v to %v, want 100 from 1 to 5",
			len(curve), curve[0], curve[len(curve)-1])
	}
}

func TestQuantiles(t *testing.T) {
	tens := []float64{10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110}
	for _, test := range []struct {
		sorted     []float64
		part, want float64
	}{
		{nil, 0.5, 0}, {[]float64{7}, 0.99, 7}, {tens, 0.5, 60}, {tens, 0.99, 110}, {tens, 0, 10},
	} {
		if got := quantile(test.sorted, test.part); got != test.want {
			t.Errorf("quantile(%v, %v) is %v, want %v", test.sorted, test.part, got, test.want)
		}
	}
}

func TestTableShowsMediansAndRatios(t *testing.T) {
	run := func(contender string, foos int, value float64) Result {
		return Result{Contender: contender, Mode: modePaused, Foos: foos,
			Figures: map[string]float64{"x": value}}
	}
	results := &Results{Runs: []Result{
		run(this, 10, 3), run(this, 10, 4), run(this, 10, 900), run(this, 20, 5),
		run("lasso", 10, 8), run(plainCreates, 10, 1),
	}}
	got := results.table(false, []column{
		{title: "X", mode: modePaused, figure: "x", format: "%.1f ms", relative: this},
	})
	want := "| | X |\n|---|---|\n| this controller | 4.0 ms |\n| Lasso | 8.0 ms (2.00 ×) |\n"
	if got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}

func TestContendersTakeTurns(t *testing.T) {
	for mode, want := range map[string][]string{
		modePaused: {
			"creates 100 1", "this 100 1", "lasso-defaults 50 1", "this 100 2", "creates 100 2",
			"this 300 1", "this 300 2",
		},
		modeApart: {"creates 100 1", "this 100 1", "this 100 2", "creates 100 2"},
	} {
		o, err := parseFlags([]string{"-foos=100,300", "-repetitions=2",
			"-contenders=creates,this,lasso-defaults"})
		if err != nil {
			t.Fatal(err)
		}
		o.modes = []string{mode}
		var got []string
		for _, run := range o.plan() {
			got = append(got, fmt.Sprint(run.Contender, " ", run.Foos, " ", run.Repetition))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", mode, got, want)
		}
	}
}

func TestBurstsOfWebsitesTakeTurns(t *testing.T) {
	o, err := parseFlags([]string{"-websites=700", "-repetitions=2"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, run := range o.websitePlan() {
		got = append(got, fmt.Sprint(run.Contender, " ", run.Foos, " ", run.Repetition))
	}
	want := []string{
		"this 500 0", "this 700 1", "controller-runtime 700 1", "controller-runtime 700 2", "this 700 2",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTimeOfWebsitesEndsWithTheLastStatus(t *testing.T) {
	refused := requestAt(9, "me", "update", "websites/status", "b")
	refused.ResponseStatus.Code = 409
	requests := []audit.Request{
		requestAt(1, userPrefix+"load", "create", "websites", "a"),
		requestAt(3, "me", "create", "events", "a.1"),
		requestAt(3, "me", "create", "events", "a.2"),
		requestAt(5, "me", "update", "websites/status", "a"),
		requestAt(8, "me", "update", "websites/status", "b"),
		requestAt(8, "you", "update", "websites/status", "b"),
		refused,
	}
	r := &run{user: "me", n: 1, figures: map[string]float64{}}
	r.recordWebsites(requests)
	want := map[string]float64{"burst/seconds": 8, "burst/Events lost": 1}
	if !maps.Equal(r.figures, want) {
		t.Errorf("got %v, want %v", r.figures, want)
	}
}

func TestBadFlagsAreRefused(t *testing.T) {
	for _, flag := range []string{
		"-foos=many", "-foos=0", "-modes=asleep", "-contenders=nobody", "-repetitions=0", "more",
	} {
		if _, err := parseFlags([]string{flag}); err == nil {
			t.Errorf("%s is accepted, want an error", flag)
		}
	}
}
