// Command bench compares this controller with the same Foo on two frameworks, and with plain
// writes: see docs/performance.md. It starts a control plane of its own.
//
// Read it in this order: contenders.go, what is measured; run.go, start.go, phase.go and
// restarts.go, how; websites.go, the same for Websites; figures.go, what is computed from the audit log; tables.go, targets.go,
// plots.go and page.go, what is shown.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/shirou/gopsutil/v4/cpu"

	"example.com/sample-controller/test/internal/cluster"
)

const root = "../.."

// options are the settings from the command line.
type options struct {
	sizes       []int // numbers of Foos
	modes       []string
	contenders  []string
	repetitions int
	idleTime    time.Duration
	steadyFoos  int
	steadyEvery time.Duration
	mostWorking int
	file        string
	clusterName string
	restarts    int
	websites    int
	draw        bool
}

func main() {
	o, err := parseFlags(os.Args[1:])
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		err = o.run(ctx)
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func parseFlags(args []string) (o options, err error) {
	var ids []string
	for _, c := range contenders {
		ids = append(ids, c.id)
	}
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	foos := fs.String("foos", "1000", "list of numbers of Foos; references and defaults take the "+
		"smallest")
	possible := modes
	if !canSeparate() {
		possible = []string{modeWorking, modePaused}
	}
	list := fs.String("modes", strings.Join(possible, ","), "list of working, paused (without the "+
		"control plane's other controllers) and apart (paused, with one processor for the API server "+
		"and one for the contender; needs taskset)")
	names := fs.String("contenders", strings.Join(ids, ","), "list of what to measure")
	fs.IntVar(&o.repetitions, "repetitions", 3, "number of runs for each median")
	fs.DurationVar(&o.idleTime, "idle", 10*time.Second, "how long to count requests while idle")
	fs.IntVar(&o.steadyFoos, "steady-foos", 100, "number of Foos to create one after the other")
	fs.DurationVar(&o.steadyEvery, "steady-every", 100*time.Millisecond, "time between two of them")
	fs.IntVar(&o.mostWorking, "most-working", 5000, "largest number of Foos in mode working, in "+
		"which more would take long")
	fs.StringVar(&o.file, "o", "results/short.json", "`file` to write the figures to")
	fs.StringVar(&o.clusterName, "cluster", "bench",
		"`name` of the cluster that hack/cluster starts, and stops at the end")
	fs.IntVar(&o.restarts, "restarts", 0, "measure only this `number` of starts of each controller, "+
		"in turns, with the same Foos")
	fs.IntVar(&o.websites, "websites", 0, "measure only bursts of this `number` of Websites, "+
		"with both controllers of Websites")
	fs.BoolVar(&o.draw, "draw", false,
		"measure nothing: draw the plots and write the tables of docs/performance.md")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	if fs.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	if o.repetitions < 1 {
		return o, fmt.Errorf("-repetitions must be at least 1, not %d", o.repetitions)
	}
	for text := range strings.SplitSeq(*foos, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return o, fmt.Errorf("-foos must be numbers, not %q", text)
		}
		o.sizes = append(o.sizes, n)
	}
	slices.Sort(o.sizes)
	o.contenders = strings.Split(*names, ",")
	if o.modes, err = parseModes(*list, possible); err != nil {
		return o, err
	}
	for _, name := range o.contenders {
		if !slices.Contains(ids, name) {
			return o, fmt.Errorf("-contenders has no %q; there are %s", name, strings.Join(ids, ", "))
		}
	}
	return o, nil
}

// parseModes returns the modes of a list, in the order in which they are measured.
func parseModes(list string, possible []string) ([]string, error) {
	chosen := strings.Split(list, ",")
	for _, mode := range chosen {
		if !slices.Contains(possible, mode) {
			return nil, fmt.Errorf("-modes has no %q on this machine; there are %s", mode,
				strings.Join(possible, ", "))
		}
	}
	return slices.DeleteFunc(slices.Clone(possible), func(mode string) bool {
		return !slices.Contains(chosen, mode)
	}), nil
}

// run measures and draws, or only draws.
func (o options) run(ctx context.Context) error {
	if o.draw {
		return draw()
	}
	if err := o.checkPrograms(); err != nil {
		return err
	}
	if o.restarts > 0 {
		results, err := o.compareRestarts(ctx)
		if err == nil {
			fmt.Print(results.restarts())
		}
		return err
	}
	plan, contenders := o.plan(), contenders
	if o.websites > 0 {
		plan, contenders = o.websitePlan(), websiteContenders
	}
	results, err := o.measure(ctx, contenders, plan)
	if err != nil && results != nil && len(results.Runs) > 0 {
		return errors.Join(err, results.write(o.file+".partial"))
	}
	if err != nil {
		return err
	}
	if err := results.write(o.file); err != nil {
		return err
	}
	if o.websites > 0 {
		fmt.Print(results.websiteReport())
	} else {
		fmt.Print(results.report())
	}
	return nil
}

// checkPrograms returns an error if a program is missing, which says how to build it.
func (o options) checkPrograms() error {
	programs := contenders
	if o.websites > 0 {
		programs = websiteContenders
	}
	for _, c := range programs {
		if c.isReference() || !slices.Contains(o.contenders, c.id) && c.id != this {
			continue
		}
		if _, err := os.Stat(filepath.Join(root, c.command[0])); err != nil {
			return fmt.Errorf("%w; 'make bench' builds it", err)
		}
	}
	return nil
}

// measure starts a control plane and does the runs of plan, which are in the order of modes. With
// an error, it returns the results so far. Repetition 0 only warms up.
func (o options) measure(
	ctx context.Context, contenders []contender, plan []Result,
) (*Results, error) {
	b, stop, err := o.startBench(ctx)
	if err != nil {
		return nil, err
	}
	defer stop()
	results, err := newResults(b)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	for i, run := range plan {
		c := *findIn(contenders, run.Contender)
		fmt.Fprintf(os.Stderr, "%3d of %d, after %4.0f s: %s, %s, %d %ss\n", i+1, len(plan),
			time.Since(begin).Seconds(), run.Mode, find(c.id).title, run.Foos, c.object())
		if i == 0 || run.Mode != plan[i-1].Mode {
			if err := b.prepare(run.Mode); err != nil {
				return results, err
			}
		}
		r, err := b.newRun(c, run.Mode, run.Foos, run.Repetition)
		if err != nil {
			return results, err
		}
		if err := r.do(ctx); err != nil {
			return results, fmt.Errorf("%s, %s, %d %ss: %w", c.id, run.Mode, run.Foos, c.object(), err)
		}
		if run.Repetition == 0 {
			continue
		}
		run.Figures, run.Curve = rounded(r.figures), r.curve
		results.Runs = append(results.Runs, run)
	}
	return results, nil
}

// startBench starts a control plane and, for Foos, lets this controller work there for a moment.
func (o options) startBench(ctx context.Context) (b *bench, stop func(), err error) {
	fmt.Fprintln(os.Stderr, "starting a control plane")
	c, err := cluster.Start(root, o.clusterName)
	if err != nil {
		return nil, nil, err
	}
	if b, err = newBench(ctx, c, o); err != nil {
		c.Stop()
		return nil, nil, err
	}
	if o.websites > 0 {
		return b, c.Stop, nil
	}
	if err := b.readTemplates(ctx); err != nil {
		c.Stop()
		return nil, nil, fmt.Errorf("reading what this controller writes for a Foo: %w", err)
	}
	return b, c.Stop, nil
}

// plan returns the runs to do, without figures. The contenders take turns, so that a change on the
// machine affects all of them.
func (o options) plan() (plan []Result) {
	for _, mode := range o.modes {
		for i, foos := range o.sizes {
			for repetition := range o.repetitions {
				order := slices.Clone(contenders)
				if repetition%2 == 1 {
					slices.Reverse(order) // so that none always follows the same one
				}
				for _, c := range order {
					switch {
					case !slices.Contains(o.contenders, c.id),
						i > 0 && (c.isReference() || mode == modeApart),
						c.defaults && (i+repetition > 0 || mode == modeApart),
						mode == modeWorking && foos > o.mostWorking:
						continue
					}
					n := foos
					if c.maxFoos > 0 {
						n = min(n, c.maxFoos)
					}
					plan = append(plan, Result{
						Contender: c.id, Mode: mode, Foos: n, Repetition: repetition + 1,
					})
				}
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
	version, err := b.kubeClient.Discovery().ServerVersion()
	if err != nil {
		return nil, err
	}
	return &Results{
		Date: time.Now().Format(time.DateOnly), CPU: info[0].ModelName, CPUs: runtime.NumCPU(),
		Go: runtime.Version(), Kubernetes: version.GitVersion,
	}, nil
}

// write writes results to a file, as JSON.
func (r *Results) write(path string) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	text = bytes.ReplaceAll(text, []byte(`{"Contender"`), []byte("\n"+`{"Contender"`)) // a line each
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// readResults reads results from a file.
func readResults(path string) (*Results, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := &Results{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	if len(r.sizes()) == 0 {
		return nil, fmt.Errorf("%s has no figures of this controller; 'make bench' measures them", path)
	}
	return r, nil
}
