package apply

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/internal/metrics"
)

const (
	writers         = 16  // at a time, as many as the controller has workers
	writesPerWriter = 125 // in a round
)

// contender is a way to write a status.
type contender struct {
	name           string
	write          func(context.Context, *v1alpha1.Foo) (*v1alpha1.Foo, error)
	foos           []*v1alpha1.Foo
	cpu, requested []float64 // for each write, by round
}

// BenchmarkStatus measures what a status costs the API server and etcd, written in two ways that
// take turns. An iteration is a round. It reports medians over the rounds.
func BenchmarkStatus(b *testing.B) {
	contenders := []*contender{
		{name: "update", write: updateStatus}, {name: "apply", write: applyStatus},
	}
	update, apply := contenders[0], contenders[1]
	for _, c := range contenders {
		for i := range writers {
			c.foos = append(c.foos, createFoo(b, fmt.Sprintf("%s-%d", c.name, i)))
		}
		c.round(b) // to warm up
		c.cpu, c.requested = nil, nil
	}
	var ratios []float64
	for b.Loop() {
		for _, c := range contenders {
			c.round(b)
		}
		slices.Reverse(contenders) // the next round begins with the other one
		last := len(ratios)
		ratios = append(ratios, apply.cpu[last]/update.cpu[last])
	}
	b.ReportMetric(0, "ns/op") // is not reported
	for _, c := range contenders {
		b.ReportMetric(median(c.cpu), "server-CPU-ms/"+c.name)
		b.ReportMetric(median(c.requested), "requests/"+c.name)
	}
	b.ReportMetric(median(ratios), "apply/update")
	b.Logf("apply/update in each round: %.2f", ratios)
}

// round writes statuses, each different from the one before, and records what a write costs.
func (c *contender) round(b *testing.B) {
	b.Helper()
	secondsBefore, requestsBefore := cpuSeconds(b), requests.Load()
	errs := make([]error, len(c.foos))
	var wg sync.WaitGroup
	for i := range c.foos {
		wg.Go(func() {
			for n := 0; n < writesPerWriter && errs[i] == nil; n++ {
				errs[i] = c.writeOnce(b.Context(), &c.foos[i])
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		b.Fatal(err)
	}
	const writes = writers * writesPerWriter
	c.requested = append(c.requested, float64(requests.Load()-requestsBefore)/writes)
	c.cpu = append(c.cpu, 1000*(cpuSeconds(b)-secondsBefore)/writes)
}

// writeOnce writes a status, and keeps of the answer what an informer's cache would have.
func (c *contender) writeOnce(ctx context.Context, foo **v1alpha1.Foo) error {
	next := (*foo).DeepCopy()
	next.Status.ObservedGeneration = next.Generation
	next.Status.Selector = "app=" + next.Name
	next.Status.Replicas++
	next.Status.AvailableReplicas++
	next.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: "Progressing",
		Message: fmt.Sprintf("Deployment %q has %d of 1000000 replicas available", next.Name,
			next.Status.Replicas),
		ObservedGeneration: next.Generation, LastTransitionTime: next.CreationTimestamp,
	}}
	written, err := c.write(ctx, next)
	if err != nil {
		return err
	}
	written.ManagedFields = nil
	*foo = written
	return nil
}

// cpuSeconds returns the CPU time that the API server and etcd have taken so far, as they say
// themselves.
func cpuSeconds(b *testing.B) float64 {
	b.Helper()
	text, err := kubeClient.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	server, err := metrics.Parse(bytes.NewReader(text))
	if err != nil {
		b.Fatal(err)
	}
	etcd, err := metrics.Read("unix:" + controlPlane.EtcdSocket())
	if err != nil {
		b.Fatal(err)
	}
	const name = "process_cpu_seconds_total"
	return server[name] + etcd[name]
}

// median returns the middle of values, the greater one of two.
func median(values []float64) float64 {
	return slices.Sorted(slices.Values(values))[len(values)/2]
}
