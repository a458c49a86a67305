package main

import (
	"context"
	"errors"
	"flag"
	"net/http"
	"slices"
	"testing"

	"k8s.io/client-go/rest"

	"example.com/sample-controller/examples/website/websites"
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

// explored describes this program.
func explored() explore.Controller {
	return websites.Controller("artifacts/crd.yaml",
		func(ctx context.Context, config *rest.Config, registry http.RoundTripper) error {
			return runWithoutNetwork(ctx, config, registry, 2)
		})
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
