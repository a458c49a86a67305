package main

import (
	"context"
	"errors"
	"flag"
	"slices"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"example.com/sample-controller/explore"
	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/setting"
)

// TestExplore tries every fault at every place, and some random histories.
func TestExplore(t *testing.T) {
	if testing.Short() {
		t.Skip("all faults together take ten seconds")
	}
	if setting.All() {
		must.Do(t, errors.Join(flag.Set("explore.budget", "400"), flag.Set("explore.random", "30")))
	}
	explore.Test(t, explored())
}

// explored describes this program. The registry answers from memory; it fails when users say so.
func explored() explore.Controller {
	return explore.Controller{
		Run: func(ctx context.Context, config *rest.Config) error {
			return runWithoutNetwork(ctx, config, explore.Outside(ctx).(*fakeRegistry), 2)
		},
		CRDs:       []string{"artifacts/crd.yaml"},
		Scenarios:  scenarios,
		Outside:    func() any { return newRegistry() },
		OneProcess: true, // the registry does not refuse what a process asks that was frozen
		Heal:       func(w *explore.World) { w.Outside.(*fakeRegistry).fail(nil) },
		Settle:     18 * time.Minute, // longer than a resync
		Eventually: problems,
	}
}

// TestTwin shows why OneProcess is set: a process that was frozen before it registers a Website registers
// one that its successor has deregistered.
func TestTwin(t *testing.T) {
	budget := flag.Lookup("explore.budget").Value
	defer func(old string) { must.Do(t, budget.Set(old)) }(budget.String())
	must.Do(t, budget.Set("1")) // and the case below
	c := explored()
	c.OneProcess = false
	frozen := t.Name() + "/Twin/delete/get-websites-a-1/after/a-moment"
	const problem = "the registry still knows http://a.explored.svc:80"
	if !slices.ContainsFunc(explore.Find(t, c, frozen), func(f explore.Finding) bool {
		return f.Case == frozen && f.Problem == problem
	}) {
		t.Errorf("%s does not say: %s", frozen, problem)
	}
}
