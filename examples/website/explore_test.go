package main

import (
	"context"
	"errors"
	"flag"
	"net/http"
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
	explore.Test(t, websites.Controller("artifacts/crd.yaml",
		func(ctx context.Context, config *rest.Config, registry http.RoundTripper) error {
			o, err := parseFlags([]string{"--workers=2", "--metrics-bind-address=0",
				"--health-probe-bind-address=0"}, nil)
			if err != nil {
				return err
			}
			p, _, err := newProcess(ctx, config, o, nil, registry)
			if err != nil {
				return err
			}
			return p.Run(ctx)
		}))
}
