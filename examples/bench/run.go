package main

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"example.com/sample-controller/internal/testing/process"
	"example.com/sample-controller/internal/testing/suite/audit"
)

// Modes: the other controllers of the control plane work, or they are paused.
const (
	modeWorking = "working"
	modePaused  = "paused"
)

// modes are in the order in which they are measured, because what is paused stays paused.
var modes = []string{modeWorking, modePaused}

// userPrefix begins the names of the users whose requests are measured.
const (
	userPrefix = "bench-"
	loadUser   = userPrefix + "load" // creates the Foos
)

// In a duel, so many Foos are created for each contender, one each time that duelEvery has passed.
const (
	duelFoos  = 100
	duelEvery = 150 * time.Millisecond
)

// run measures one contender, once.
type run struct {
	*bench
	contender contender
	mode      string
	n         int
	user      string
	seen      audit.Mark // how far the audit log was read
	process   *process.Process
	atStart   float64            // the memory at the start
	figures   map[string]float64 // by name, for example "burst/Deployments per second"
}

// newRun returns a run. Each has a user of its own.
func (b *bench) newRun(what Result) (*run, error) {
	i := slices.IndexFunc(contenders, func(c contender) bool { return c.id == what.Contender })
	end, err := audit.End(b.cluster.AuditLog())
	return &run{
		bench: b, contender: contenders[i], mode: what.Mode, n: what.Foos, seen: end,
		user: fmt.Sprintf("%s%s-%s-%d-%d", userPrefix, what.Contender, what.Mode, what.Foos,
			what.Repetition),
		figures: map[string]float64{},
	}, err
}

// news returns the requests that were noted since the last call.
func (r *run) news() (requests []audit.Request, err error) {
	requests, r.seen, err = audit.Read(r.cluster.AuditLog(), r.seen, userPrefix)
	return requests, err
}

// start starts the controller with additional flags.
func (r *run) start(flags ...string) error {
	config, err := clientcmd.LoadFromFile(r.cluster.Kubeconfig())
	if err != nil {
		return err
	}
	path, err := process.WriteKubeconfig(r.cluster.Dir, config, r.user, nil)
	if err != nil {
		return err
	}
	args := append(flags, "--workers", workers, "--metrics-bind-address=0",
		"--health-probe-bind-address=0")
	program := filepath.Join(root, ".local/bin", r.contender.program)
	r.process, err = process.Start(exec.Command(program, args...), path)
	return err
}

// stop stops the controller.
func (r *run) stop() error {
	err := r.process.Stop()
	r.process = nil
	return err
}

// kill kills the controller if an error has left it running, and adds the end of its output.
func (r *run) kill(err error) error {
	if r.process == nil {
		return err
	}
	r.process.Kill()
	output := r.process.Output()
	return fmt.Errorf("%w; its output ends with:\n%s", err, output[max(0, len(output)-2000):])
}

// phases does all phases, and deletes what they created.
func (r *run) phases(ctx context.Context) error {
	requests, err := r.burst(ctx)
	if err != nil {
		return fmt.Errorf("burst: %w", err)
	}
	r.recordRates(requests)
	if err := r.idle(ctx); err != nil {
		return fmt.Errorf("idle: %w", err)
	}
	if err := r.restart(ctx); err != nil {
		return fmt.Errorf("restart: %w", err)
	}
	return r.end(ctx)
}

// end stops the controller and deletes what the run has created.
func (r *run) end(ctx context.Context) error {
	if err := r.stop(); err != nil {
		return err
	}
	if err := r.clean(ctx); err != nil {
		return err
	}
	return r.awaitOthers(ctx)
}

// burst starts the contender and creates all Foos at once. It returns the requests.
func (r *run) burst(ctx context.Context) ([]audit.Request, error) {
	if err := r.start(); err != nil {
		return nil, err
	}
	_, err := r.phase(ctx, "first", 1, func() error { return r.makeFoo(ctx, "first") })
	if err != nil {
		return nil, err
	}
	if r.atStart, err = r.memory(); err != nil {
		return nil, err
	}
	return r.phase(ctx, "burst", r.n, func() error { return r.makeAll(ctx) })
}

// idle changes nothing, and counts what the controller requests all the same.
func (r *run) idle(ctx context.Context) error {
	select {
	case <-time.After(r.idleTime):
	case <-ctx.Done():
		return ctx.Err()
	}
	requests, err := r.news()
	if err != nil {
		return err
	}
	r.figures["idle/requests"] = 0
	for _, request := range requests {
		if request.User() == r.user && !request.IsWatch() {
			r.figures["idle/requests"]++
		}
	}
	memory, err := r.memory()
	r.figures["memory/KiB per Foo"] = (memory - r.atStart) / 1024 / float64(r.n)
	return err
}

// restart stops the controller, creates a new Foo, starts the controller again, and records how
// long it takes to the Foo's Deployment.
func (r *run) restart(ctx context.Context) error {
	if err := r.stop(); err != nil {
		return err
	}
	const name = "restart"
	if err := r.makeFoo(ctx, name); err != nil {
		return err
	}
	var begin time.Time
	requests, err := r.phase(ctx, "restart", 1, func() error {
		begin = time.Now()
		return r.start()
	})
	if err != nil {
		return err
	}
	r.figures["restart/reads"], r.figures["restart/needless writes"] = 0, 0
	for _, request := range requests {
		switch {
		case request.User() != r.user || request.IsWatch():
		case request.Creates("deployments"):
			r.figures["restart/seconds"] = request.StageTimestamp.Sub(begin).Seconds()
		case !request.IsWrite():
			r.figures["restart/reads"]++
		case !strings.HasPrefix(request.ObjectRef.Name, name):
			r.figures["restart/needless writes"]++
		}
	}
	return nil
}

// duel lets all contenders work at the same time, each in a namespace of its own, and creates Foos
// for them in turn, so slowly that none waits for another. So whatever disturbs one disturbs the
// others, too. It adds the latencies to their results.
func (b *bench) duel(ctx context.Context, results []Result) (err error) {
	var runs []*run
	defer func() {
		for _, r := range runs {
			err = r.kill(err)
		}
	}()
	for _, result := range results {
		r, err := b.newRun(result)
		if err != nil {
			return err
		}
		runs = append(runs, r)
		r.user += "-duel"
		if err := r.start("--namespace=" + r.contender.namespace()); err != nil {
			return err
		}
		if err := r.makeFoo(ctx, "first"); err != nil {
			return err
		}
		if _, err := r.settle(ctx, 1); err != nil {
			return err
		}
	}
	n := min(duelFoos, results[0].Foos)
	for i := range n {
		for _, turn := range rand.Perm(len(runs)) { // each follows each other one
			r, next := runs[turn], time.Now().Add(duelEvery)
			if err := r.makeFoo(ctx, fmt.Sprintf("%s-%05d", r.contender.id, i)); err != nil {
				return err
			}
			time.Sleep(time.Until(next))
		}
	}
	for i, r := range runs {
		requests, err := r.settle(ctx, n)
		if err != nil {
			return err
		}
		r.recordLatencies(requests)
		maps.Copy(results[i].Figures, rounded(r.figures))
		if err := r.end(ctx); err != nil {
			return err
		}
	}
	return nil
}
