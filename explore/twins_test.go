package explore_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"example.com/sample-controller/explore"
)

// meter is outside of the cluster: a device that is set to what a Gadget asks for.
type meter struct {
	mu         sync.Mutex
	generation int64
	value      string
}

// set sets the value. If the device is fenced, it refuses what an older Gadget has asked for.
func (m *meter) set(gadget object, fenced bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !fenced || gadget.GetGeneration() >= m.generation {
		m.generation = gadget.GetGeneration()
		m.value = valueOf(gadget)
	}
}

// operate returns a program that says in the status what it does, and then sets the meter.
func operate(fenced bool) run {
	return rawProgram(func(p *process, key cache.ObjectName) error {
		cached, err := p.cached.ByNamespace(key.Namespace).Get(key.Name)
		if err != nil {
			return ignoreNotFound(err)
		}
		gadget := cached.DeepCopyObject().(object)
		if err := p.setStatus(gadget, map[string]any{"doing": valueOf(gadget)}); err != nil {
			return err
		}
		explore.Outside(p.ctx).(*meter).set(gadget, fenced)
		return nil
	})
}

// lead returns a program that works only while it holds a Lease.
func lead(run run) run {
	return func(ctx context.Context, config *rest.Config) error {
		ctx, cancel := context.WithCancelCause(ctx)
		leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
			Lock: &resourcelock.LeaseLock{
				LeaseMeta:  metav1.ObjectMeta{Namespace: explore.Namespace, Name: "gadgets"},
				Client:     kubernetes.NewForConfigOrDie(config).CoordinationV1(),
				LockConfig: resourcelock.ResourceLockConfig{Identity: string(uuid.NewUUID())},
			},
			LeaseDuration: 5 * time.Minute, RenewDeadline: 3 * time.Minute, RetryPeriod: 2 * time.Minute,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(ctx context.Context) { cancel(run(ctx, config)) },
				OnStoppedLeading: func() {},
			},
		})
		return context.Cause(ctx)
	}
}

// TestTwin shows what a Lease does not prevent: a process that was frozen does what it was about to,
// after another one has taken over. What is outside needs a fence against that.
func TestTwin(t *testing.T) {
	for _, test := range []struct {
		name  string
		run   run
		finds bool
	}{
		{"without a fence", operate(false), true},
		{"without a fence, with a Lease", lead(operate(false)), true},
		{"with a fence", operate(true), false},
		{"with a fence and a Lease", lead(operate(true)), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			found := map[bool]string{} // by whether a twin did it
			for _, f := range explore.Find(t, explore.Controller{
				Run: test.run, CRDs: []string{gadgets}, Outside: func() any { return &meter{} },
				Scenarios: []explore.Scenario{{Name: "set", Steps: steps(createGadget, changeGadget)}},
				Eventually: func(now explore.State) []string {
					m := now.Outside.(*meter)
					m.mu.Lock()
					defer m.mu.Unlock()
					if gadget := explore.Get[metav1.PartialObjectMetadata](now, "gadgets", "a"); gadget == nil ||
						m.generation == gadget.GetGeneration() {
						return nil
					}
					return []string{fmt.Sprintf("the meter is at %q", m.value)}
				},
			}, t.Name()+"/Twin/set/update-gadgets-status-a-1/after/a-moment") {
				found[strings.Contains(f.Case, "/Twin/")] += fmt.Sprintf("\n%s: %s", f.Case, f.Problem)
			}
			if test.finds != strings.Contains(found[true], `the meter is at "1"`) || found[false] != "" {
				t.Errorf("with twins: %s\nwithout: %s", found[true], found[false])
			}
		})
	}
}
