package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"example.com/sample-controller/internal/suite/audit"
	"example.com/sample-controller/internal/suite/process"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// Modes: the other controllers of the control plane work, or they are paused. In mode apart, they
// are paused, the API server and etcd share a processor, and the contender has another.
const (
	modeWorking = "working"
	modePaused  = "paused"
	modeApart   = "apart"
)

// modes are in the order in which they are measured, because what is paused stays paused.
var modes = []string{modeWorking, modePaused, modeApart}

// userPrefix begins the names of the users whose requests are measured.
const userPrefix = "bench-"

// run measures one contender, once.
type run struct {
	*bench
	contender contender
	mode      string
	n         int
	user      string
	seen      audit.Mark // how far the audit log was read

	process       *process.Process        // if it is a controller
	metrics       string                  // the address of its metrics, if it has any
	registry      string                  // the URL of the registry, for Websites
	made          chan *v1alpha1.Foo      // if it is a reference: the Foos to write for
	referenceDone func()                  // waits for the reference
	fail          context.CancelCauseFunc // ends the run
	figures       map[string]float64      // by name, for example "burst/Deployments per second"
	curve         []float64               // see curveOf
}

// newRun returns a run of c with n Foos. Each run has a user of its own.
func (b *bench) newRun(c contender, mode string, n, repetition int) (*run, error) {
	end, err := audit.End(b.cluster.AuditLog())
	return &run{
		bench: b, contender: c, mode: mode, n: n, seen: end,
		user:    fmt.Sprintf("%s%s-%s-%d-%d", userPrefix, c.id, mode, n, repetition),
		figures: map[string]float64{},
	}, err
}

// news returns the requests that were noted since the last call.
func (r *run) news() (requests []audit.Request, err error) {
	requests, r.seen, err = audit.Read(r.cluster.AuditLog(), r.seen, userPrefix)
	return requests, err
}

// end kills the controller, if it still runs.
func (r *run) end() {
	if r.process != nil {
		r.process.Kill()
	}
}

// do does all phases, and deletes what they created. An error contains the end of the controller's
// output.
func (r *run) do(ctx context.Context) error {
	defer r.end()
	ctx, r.fail = context.WithCancelCause(ctx)
	defer r.fail(nil)
	err := r.phases(ctx)
	if err != nil && r.process != nil {
		output := r.process.Output()
		err = fmt.Errorf("%w; its output ends with:\n%s", err, output[max(0, len(output)-2000):])
	}
	return err
}

func (r *run) phases(ctx context.Context) error {
	if r.contender.websites {
		return r.websiteBurst(ctx)
	}
	if r.mode == modeApart {
		return r.backlog(ctx)
	}
	if err := r.burst(ctx); err != nil {
		return fmt.Errorf("burst: %w", err)
	}
	if !r.contender.isReference() {
		if err := r.idle(ctx); err != nil {
			return fmt.Errorf("idle: %w", err)
		}
		if err := r.restart(ctx); err != nil {
			return fmt.Errorf("restart: %w", err)
		}
	}
	if err := r.steady(ctx); err != nil {
		return fmt.Errorf("steady: %w", err)
	}
	if err := r.stopAndClean(ctx); err != nil {
		return err
	}
	if r.mode == modeWorking || r.n > r.sizes[0] {
		return nil // a backlog is compared with the references, which do no more
	}
	return r.backlog(ctx)
}

// burst creates all Foos at once while the contender is at work.
func (r *run) burst(ctx context.Context) error {
	if err := r.start(ctx); err != nil {
		return err
	}
	_, err := r.phase(ctx, "first", 1, func() error { return r.makeFoos(ctx, "first", 1, 1, 0) })
	if err != nil {
		return err
	}
	if err := r.recordMemory("memory/at the start"); err != nil {
		return err
	}
	before, err := r.syncs()
	if err != nil {
		return err
	}
	requests, err := r.phase(ctx, "burst", r.n, func() error {
		return r.makeFoos(ctx, "burst", r.n, makers, 0)
	})
	if err != nil {
		return err
	}
	after, err := r.syncs()
	if err != nil {
		return err
	}
	if r.metrics != "" {
		r.figures["burst/syncs per Foo"] = (after - before) / float64(r.n)
	}
	r.recordRates("burst", requests, userPrefix+"load", "foos")
	r.recordLatencies("burst", requests)
	return r.recordMemory("memory/after the burst")
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
	if err := r.recordMemory("memory/idle"); err != nil {
		return err
	}
	if r.contender.maxFoos > 0 {
		return nil // too few Foos to divide by
	}
	growth := r.figures["memory/idle"] - r.figures["memory/at the start"]
	r.figures["memory/KiB per Foo"] = growth / 1024 / float64(r.n)
	return nil
}

// restart stops the controller, creates a new Foo, and starts the controller again.
func (r *run) restart(ctx context.Context) error {
	if err := r.stop(); err != nil {
		return err
	}
	if err := r.startWith(ctx, "restart"); err != nil {
		return err
	}
	return r.recordMemory("memory/after a restart")
}

// startWith creates a Foo of that name, starts the controller, and records how long it takes to the
// Foo's Deployment.
func (r *run) startWith(ctx context.Context, name string) error {
	if err := r.makeFoo(ctx, name); err != nil {
		return err
	}
	var begin time.Time
	requests, err := r.phase(ctx, "restart", 1, func() error {
		begin = time.Now()
		return r.start(ctx)
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

// steady creates Foos one after the other, so slowly that none waits for another.
func (r *run) steady(ctx context.Context) error {
	n := min(r.steadyFoos, r.n)
	requests, err := r.phase(ctx, "steady", n, func() error {
		return r.makeFoos(ctx, "steady", n, 1, r.steadyEvery)
	})
	if err == nil {
		r.recordLatencies("steady", requests)
	}
	return err
}

// backlog creates all Foos before it starts the contender. It shows how fast the contender is while
// nobody else does anything.
func (r *run) backlog(ctx context.Context) error {
	r.made = make(chan *v1alpha1.Foo, r.n)
	if err := r.makeFoos(ctx, "backlog", r.n, makers, 0); err != nil {
		return fmt.Errorf("backlog: %w", err)
	}
	requests, err := r.phase(ctx, "backlog", r.n, func() error { return r.start(ctx) })
	if err != nil {
		return fmt.Errorf("backlog: %w", err)
	}
	r.recordRates("backlog", requests, r.user, "deployments")
	r.curve = curveOf(requests, r.user)
	return r.stopAndClean(ctx)
}

func (r *run) stopAndClean(ctx context.Context) error {
	if err := r.stop(); err != nil {
		return err
	}
	if err := r.clean(ctx); err != nil {
		return err
	}
	return r.awaitOthers(ctx)
}
