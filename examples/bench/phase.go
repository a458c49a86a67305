package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	psprocess "github.com/shirou/gopsutil/v4/process"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"example.com/sample-controller/internal/testing/suite/audit"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

const (
	// quiet is how long a contender must request nothing before a phase counts as done.
	quiet = 1200 * time.Millisecond
	// phaseTimeout limits a phase, which takes seconds.
	phaseTimeout = 5 * time.Minute
)

// phase does load and waits until everything that n Foos ask for is written. It records CPU time
// and requests for each, and returns all requests, of the contender and of the load.
func (r *run) phase(
	ctx context.Context, name string, n int, load func() error,
) ([]audit.Request, error) {
	before, err := r.cpuTimes()
	if err != nil {
		return nil, err
	}
	if _, err := r.news(); err != nil { // skip what was before
		return nil, err
	}
	if err := load(); err != nil {
		return nil, err
	}
	requests, err := r.settle(ctx, n)
	if err != nil {
		return nil, err
	}
	after, err := r.cpuTimes()
	if err != nil {
		return nil, err
	}
	cpu := name + "/cpu ms per Foo/"
	for program := range after {
		r.figures[cpu+program] = 1000 * (after[program] - before[program]) / float64(n)
	}
	r.figures[cpu+"servers"] = r.figures[cpu+"kube-apiserver"] + r.figures[cpu+"etcd"]
	total := name + "/requests per Foo"
	for _, request := range requests {
		if request.User() == r.user && !request.IsWatch() {
			r.figures[total] += 1 / float64(n)
			r.figures[total+"/"+request.What()] += 1 / float64(n)
		}
	}
	return requests, nil
}

// settle waits until there are n more Deployments, nothing is requested any more, and isDone
// returns true. It returns the requests made meanwhile.
func (r *run) settle(ctx context.Context, n int) (requests []audit.Request, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, phaseTimeout,
		fmt.Errorf("not done in %v", phaseTimeout))
	defer cancel()
	created, last := 0, time.Now()
	for {
		news, err := r.news()
		if err != nil {
			return nil, err
		}
		for _, request := range news {
			if request.User() != r.user {
				continue
			}
			last = time.Now()
			if request.Creates("deployments") {
				created++
			}
		}
		requests = append(requests, news...)
		if created >= n && time.Since(last) > quiet {
			done, err := r.isDone(ctx)
			if done || err != nil {
				return requests, err
			}
			last = time.Now() // isDone is costly
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-r.process.Exited:
			err = errors.New("the controller has exited: " + r.process.LastLine())
		}
		if err != nil {
			return nil, fmt.Errorf("with %d of %d Deployments: %w", created, n, err)
		}
	}
}

// isDone reports whether all Foos are Ready. If the other controllers are paused, that cannot
// happen, and it returns true.
func (r *run) isDone(ctx context.Context) (bool, error) {
	if r.mode == modePaused {
		return true, nil
	}
	foos, err := r.foos.Foos(r.contender.namespace()).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return false, err
	}
	return !slices.ContainsFunc(foos.Items, func(foo v1alpha1.Foo) bool {
		return !meta.IsStatusConditionTrue(foo.Status.Conditions, v1alpha1.ConditionReady)
	}), nil
}

// awaitOthers waits until the other controllers have finished with what was deleted.
func (r *run) awaitOthers(ctx context.Context) error {
	const little = 0.05 // seconds
	before := math.Inf(-1)
	return wait.PollUntilContextCancel(ctx, 500*time.Millisecond, true,
		func(context.Context) (bool, error) {
			times, err := r.cpuTimes()
			now := 0.0
			for _, component := range others {
				now += times[component]
			}
			done := now-before < little
			before = now
			return done, err
		})
}

// cpuTimes returns the CPU time that each process has used, in seconds.
func (r *run) cpuTimes() (map[string]float64, error) {
	times := map[string]float64{}
	pids := maps.Clone(r.pids)
	if r.process != nil {
		pids["controller"] = r.process.PID()
	}
	for program, pid := range pids {
		p, err := psprocess.NewProcess(int32(pid))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", program, err)
		}
		t, err := p.Times()
		if err != nil {
			return nil, fmt.Errorf("reading the CPU time of %s: %w", program, err)
		}
		times[program] = t.User + t.System
	}
	return times, nil
}

// memory returns the resident memory of the controller, in bytes.
func (r *run) memory() (float64, error) {
	p, err := psprocess.NewProcess(int32(r.process.PID()))
	if err != nil {
		return 0, err
	}
	memory, err := p.MemoryInfo()
	if err != nil {
		return 0, fmt.Errorf("reading the controller's memory: %w", err)
	}
	return float64(memory.RSS), nil
}
