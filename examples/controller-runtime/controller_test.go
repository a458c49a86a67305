package main

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/sample-controller/docs/foos"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// lagging is a client whose Cache never shows the last write. It has only Get, which names the
// object, and waits unless it may return an old state.
type lagging struct{ client.Client }

func (lagging) Get(
	ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption,
) error {
	if !(&client.GetOptions{}).ApplyOptions(options).DisableReadYourWritesConsistency {
		<-ctx.Done()
		return fmt.Errorf("waiting for the cache: %w", ctx.Err())
	}
	object.SetName(key.Name)
	return ctx.Err()
}

func TestReadDoesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Reconciler{Client: lagging{}}
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
