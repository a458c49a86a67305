package main

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"example.com/sample-controller/internal/extra/shards"
	"example.com/sample-controller/internal/program"
	"example.com/sample-controller/internal/testing/fakes"
	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

func TestShardsShareTheFoosWithoutOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		errors := fakes.CountErrors(t)
		fake := fakes.New()
		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
		defer cancel()
		recorder := must.Get(newRecorder(ctx, fake.Kube))(t)
		p := &process{
			options:  &options{Options: program.Options{Workers: 2, CacheSyncTimeout: time.Minute}},
			clients:  &clients{&program.Clients{Kube: fake.Kube}, fake.Foo},
			recorder: recorder,
		}
		const foos = 20
		for i := range foos {
			foo := &v1alpha1.Foo{
				ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprintf("%d-namespace", i), Name: "foo"},
				Spec:       v1alpha1.FooSpec{DeploymentName: "web", Replicas: new(int32(1))},
			}
			_, err := fake.Foo.SamplecontrollerV1alpha1().Foos(foo.Namespace).Create(
				ctx, foo, metav1.CreateOptions{})
			must.Do(t, err)
		}
		ended := make(chan error, 2)
		// work works on one of two shards, and returns where Deployments have been created so far.
		work := func(index int) (namespaces []string) {
			go func() { ended <- p.work(ctx, shards.Shard{Index: index, Count: 2}) }()
			synctest.Wait()
			for _, action := range fake.Kube.Actions() {
				if action.Matches("create", "deployments") {
					namespaces = append(namespaces, action.GetNamespace())
				}
			}
			return namespaces
		}
		if first := work(0); len(first) < 3 || len(first) > foos-3 {
			t.Errorf("with the first shard: got Deployments in %v, want some of %d", first, foos)
		}
		both := work(1)
		slices.Sort(both)
		if len(both) != foos || len(slices.Compact(both)) != foos || errors.Load() != 0 {
			t.Errorf("with both shards: got Deployments in %v, and %d errors, want one for each Foo",
				both, errors.Load())
		}
		cancel()
		for range 2 {
			if err := <-ended; err != nil {
				t.Errorf("work: got error %v, want none", err)
			}
		}
		recorder.Flush(time.Second)
	})
}
