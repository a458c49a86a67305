package main

import (
	"context"
	"errors"
	"flag"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"example.com/sample-controller/explore"
	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/scenarios"
	"example.com/sample-controller/internal/testing/setting"
)

// checkOutcomes is for a test that compares what the controller did about each error.
var checkOutcomes = func(*testing.T, []explore.Outcome) {}

// TestExplore tries every fault at every place.
func TestExplore(t *testing.T) {
	if testing.Short() {
		t.Skip("all faults together take ten seconds")
	}
	if setting.All() {
		must.Do(t, errors.Join(flag.Set("explore.budget", "900"), flag.Set("explore.random", "500")))
	}
	outcomes := explore.Test(t, explore.Controller{
		Run: func(ctx context.Context, config *rest.Config) error {
			o, err := parseFlags([]string{"--workers=2", "--metrics-bind-address=0",
				"--health-probe-bind-address=0"}, nil)
			if err != nil {
				return err
			}
			p, _, err := newProcess(ctx, config, o, nil)
			if err != nil {
				return err
			}
			return p.Run(ctx)
		},
		CRDs:       []string{"artifacts/examples/crd.yaml"},
		Scenarios:  scenarios.All,
		Moves:      scenarios.Moves,
		Always:     scenarios.Always,
		Eventually: scenarios.Eventually,
		Delay:      blockedRetryDelay + 5*time.Second,
		Settle:     6 * time.Minute,
		Timeout:    syncTimeout,
	})
	checkOutcomes(t, outcomes)
}
