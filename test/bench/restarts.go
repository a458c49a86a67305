package main

import (
	"context"
	"fmt"
	"os"
	"slices"
)

// compareRestarts lets the controllers take turns at starting with the Foos that this controller
// has worked for. Other than in a run, each of them finds the API server in the same state, and
// there can be many starts.
func (o options) compareRestarts(ctx context.Context) (*Results, error) {
	b, stop, err := o.startBench(ctx)
	if err != nil {
		return nil, err
	}
	defer stop()
	if err := b.prepare(modePaused); err != nil {
		return nil, err
	}
	foos := o.sizes[len(o.sizes)-1]
	fmt.Fprintf(os.Stderr, "creating %d Foos\n", foos)
	if err := b.fillFor(ctx, foos); err != nil {
		return nil, err
	}
	results, err := newResults(b)
	if err != nil {
		return nil, err
	}
	order := slices.DeleteFunc(slices.Clone(contenders), func(c contender) bool {
		return c.isReference() || c.defaults || !slices.Contains(o.contenders, c.id)
	})
	for repetition := range o.restarts {
		for _, c := range order {
			r, err := b.newRun(c, modePaused, foos, repetition+1)
			if err != nil {
				return nil, err
			}
			err = r.startWith(ctx, fmt.Sprintf("restart-%s-%d", c.id, repetition+1))
			r.end()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.title, err)
			}
			results.Runs = append(results.Runs, Result{
				Contender: c.id, Mode: modePaused, Foos: foos, Repetition: repetition + 1,
				Figures: r.figures,
			})
			fmt.Fprintf(os.Stderr, "start %d of %d, %s: %.2f s\n", repetition+1, o.restarts, c.title,
				r.figures["restart/seconds"])
		}
		slices.Reverse(order) // so that none always follows the same one
	}
	return results, nil
}

// restarts returns the table of what compareRestarts has measured.
func (r *Results) restarts() string {
	return r.machine() + "\n" + r.table(false, append(slices.Clone(restart), column{
		title: "CPU of API server and etcd", mode: modePaused,
		figure: "restart/cpu ms per Foo/servers", format: "%.0f ms", relative: this,
	}))
}

// fillFor creates that many Foos, and lets this controller make everything that they ask for.
func (b *bench) fillFor(ctx context.Context, foos int) error {
	r, err := b.newRun(*find(this), modePaused, foos, 0)
	if err != nil {
		return err
	}
	defer r.end()
	if err := r.start(ctx); err != nil {
		return err
	}
	if _, err := r.phase(ctx, "fill", foos, func() error {
		return r.makeFoos(ctx, "fill", foos, makers, 0)
	}); err != nil {
		return err
	}
	return r.stop()
}
