// Command bench compares this controller with the same Foo on two frameworks: see
// docs/performance.md. It starts a control plane of its own.
//
// Read it in this order: run.go and phase.go, how it is measured; figures.go, what is computed from
// the audit log; tables.go, who is measured, and what is shown.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/shirou/gopsutil/v4/cpu"

	"example.com/sample-controller/internal/testing/cluster"
)

const root = "../.."

// options are what is measured.
type options struct {
	foos        int
	modes       []string
	repetitions int
	idleTime    time.Duration // how long to count requests while idle
}

// ofPage is what the page shows.
var ofPage = options{1000, modes, 6, 10 * time.Second}

const figuresFile = "results/figures.json"

func main() {
	drawOnly := flag.Bool("draw", false, "measure nothing: write the tables of docs/performance.md")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if !*drawOnly {
		err = ofPage.run(ctx)
	}
	if err == nil {
		err = draw()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", cmp.Or(context.Cause(ctx), err)) // a signal has a name
		os.Exit(1)
	}
}

// run measures, and writes the figures.
func (o options) run(ctx context.Context) error {
	for _, c := range contenders {
		if _, err := os.Stat(filepath.Join(root, ".local/bin", c.program)); err != nil {
			return fmt.Errorf("%w; 'make bench' builds it", err)
		}
	}
	results, err := o.measure(ctx)
	if err != nil {
		return err
	}
	return results.write()
}

// measure starts a control plane and does the runs of the plan, which are in the order of modes.
// Repetition 0 only warms up.
func (o options) measure(ctx context.Context) (*Results, error) {
	fmt.Fprintln(os.Stderr, "starting a control plane")
	c, err := cluster.Start(root, cluster.NewName())
	if err != nil {
		return nil, err
	}
	defer c.Stop()
	b, err := newBench(ctx, c, o)
	if err != nil {
		return nil, err
	}
	results, err := newResults(b)
	if err != nil {
		return nil, err
	}
	plan, begin := o.plan(), time.Now()
	for i, run := range plan {
		what := fmt.Sprintf("%s, %s, %d Foos", run.Contender, run.Mode, run.Foos)
		fmt.Fprintf(os.Stderr, "%3d of %d, after %4.0f s: %s\n", i+1, len(plan),
			time.Since(begin).Seconds(), what)
		if run.Mode == modePaused && (i == 0 || plan[i-1].Mode != modePaused) {
			if err := b.pause(); err != nil {
				return nil, err
			}
		}
		r, err := b.newRun(run)
		if err != nil {
			return nil, err
		}
		if err := r.kill(r.phases(ctx)); err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
		if run.Repetition > 0 {
			run.Figures = rounded(r.figures)
			results.Runs = append(results.Runs, run)
		}
		if i > 0 && i%len(contenders) == 0 {
			fmt.Fprintf(os.Stderr, "%s: all at the same time, in turn\n", run.Mode)
			if err := b.duel(ctx, results.Runs[len(results.Runs)-len(contenders):]); err != nil {
				return nil, fmt.Errorf("duel, %s: %w", run.Mode, err)
			}
		}
	}
	return results, nil
}

// plan returns the runs to do, without figures. The contenders take turns, so that a change on the
// machine affects all of them. The first run warms up.
func (o options) plan() []Result {
	plan := []Result{{Contender: this, Mode: o.modes[0], Foos: min(o.foos, 500)}}
	order := slices.Clone(contenders)
	for _, mode := range o.modes {
		for repetition := range o.repetitions {
			for _, c := range order {
				plan = append(plan, Result{
					Contender: c.id, Mode: mode, Foos: o.foos, Repetition: repetition + 1,
				})
			}
			// Reverse and rotate the order, so that its effects cancel out.
			slices.Reverse(order)
			if repetition%2 == 1 {
				order = append(order[1:], order[0])
			}
		}
	}
	return plan
}

// newResults returns empty results, with what they are measured on.
func newResults(b *bench) (*Results, error) {
	info, err := cpu.Info()
	if err != nil || len(info) == 0 {
		return nil, fmt.Errorf("asking for the processor: %w", err)
	}
	version, err := b.cluster.Kube.Discovery().ServerVersion()
	if err != nil {
		return nil, err
	}
	return &Results{
		Date: time.Now().Format(time.DateOnly), CPU: info[0].ModelName, CPUs: runtime.NumCPU(),
		Go: runtime.Version(), Kubernetes: version.GitVersion,
	}, nil
}

// write writes results to the file, as JSON.
func (r *Results) write() error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	text = bytes.ReplaceAll(text, []byte(`{"Contender"`), []byte("\n"+`{"Contender"`)) // a line each
	return os.WriteFile(figuresFile, append(text, '\n'), 0o644)
}

// readResults reads the results that the page shows.
func readResults() (*Results, error) {
	text, err := os.ReadFile(figuresFile)
	if err != nil {
		return nil, err
	}
	r := &Results{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("reading %s: %w", figuresFile, err)
	}
	if len(r.Runs) == 0 {
		return nil, fmt.Errorf("%s has no figures; 'make bench' measures them", figuresFile)
	}
	return r, nil
}
