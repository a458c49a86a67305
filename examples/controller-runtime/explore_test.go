package main

import (
	"context"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"example.com/sample-controller/internal/testing/foos"
)

// TestExplore finds what docs/explore.md says, and nothing else.
func TestExplore(t *testing.T) {
	ctrl.SetLogger(klog.Logger{})
	foos.Expect(t, "../..", "../examples/controller-runtime",
		func(ctx context.Context, config *rest.Config) error {
			o, err := parseFlags([]string{"--workers=2", "--metrics-bind-address=0",
				"--health-probe-bind-address=0"})
			if err != nil {
				return err
			}
			o.manager.Controller.SkipNameValidation = new(true) // there is one after the other
			return runManager(ctx, config, o)
		})
}
