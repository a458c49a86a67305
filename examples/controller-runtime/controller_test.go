package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/sample-controller/examples/internal/lagging"
	"example.com/sample-controller/internal/testing/foos"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

func TestReadDoesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Reconciler{Client: lagging.Client{}}
		foo := &v1alpha1.Foo{}
		begin := time.Now()

		err := r.get(t.Context(), client.ObjectKey{Name: "web"}, foo)

		if err != nil || foo.Name != "web" {
			t.Errorf("got Foo %q and error %v, want Foo \"web\" and no error", foo.Name, err)
		}
		if waited := time.Since(begin); waited != maxStaleness {
			t.Errorf("waited %v, want %v", waited, maxStaleness)
		}
	})
}

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
