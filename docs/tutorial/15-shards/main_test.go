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

	"example.com/sample-controller/internal/fakes"
	"example.com/sample-controller/internal/shards"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// namespaces returns the namespaces in which there are Deployments.
func namespaces(t *testing.T, c *clients) (found []string) {
	t.Helper()
	list, err := c.kube.AppsV1().Deployments("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, deployment := range list.Items {
		found = append(found, deployment.Namespace)
	}
	return found
}

func TestShardsShareTheFoosWithoutOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		errors := fakes.CountErrors(t)
		fake := fakes.New()
		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
		defer cancel()
		recorder, err := newRecorder(ctx, fake.Kube)
		if err != nil {
			t.Fatal(err)
		}
		p := &process{
			options:  &options{workers: 2, cacheSyncTimeout: time.Minute},
			clients:  &clients{kube: fake.Kube, foo: fake.Foo},
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
			if err != nil {
				t.Fatal(err)
			}
		}
		ended := make(chan error, 2)
		work := func(index int) {
			go func() { ended <- p.work(ctx, shards.Shard{Index: index, Count: 2}) }()
			synctest.Wait()
		}
		work(0)
		first := namespaces(t, p.clients)
		if len(first) < 3 || len(first) > foos-3 {
			t.Errorf("with the first shard: got %d Deployments, want some of %d", len(first), foos)
		}
		work(1)
		both := namespaces(t, p.clients)
		slices.Sort(both)
		if len(both) != foos || len(slices.Compact(both)) != foos {
			t.Errorf("with both shards: got Deployments in %v, want one for each Foo", both)
		}
		creations := 0
		for _, action := range fake.Kube.Actions() {
			if action.Matches("create", "deployments") {
				creations++
			}
		}
		if creations != foos || errors.Load() != 0 {
			t.Errorf("got %d creations and %d errors, want %d and none", creations, errors.Load(), foos)
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
