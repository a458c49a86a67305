// Package shards asks a real API server for shards, on a control plane of its own.
//
//	go test ./shards                    # with shard selectors
//	go test ./shards -gates ''          # the API server does not know them
package shards

import (
	"flag"
	"fmt"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/sharding"

	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/internal/cluster"
)

const root = "../../"

var (
	gates = flag.String("gates", "ShardedListAndWatch=true", "`feature gates` of the API server")

	controlPlane *cluster.Cluster
)

func TestMain(m *testing.M) {
	flag.Parse()
	_ = os.Setenv("FEATURE_GATES", *gates)
	cluster.Main(root, "shards", func(c *cluster.Cluster) (code int, err error) {
		controlPlane = c
		return m.Run(), nil
	})
}

// half selects half of all namespaces.
func half(index int) sharding.Selector {
	bounds := []string{"0x0000000000000000", "0x8000000000000000", "0x10000000000000000"}
	return sharding.NewSelector(sharding.ShardRangeRequirement{
		Key: "object.metadata.namespace", Start: bounds[index], End: bounds[index+1],
	})
}

// TestAPIServerSendsOnlyTheShard says what a list has with and without the feature, and that the
// API server's hash is ours. A list of Foos does not say that it is a part, but it is one.
func TestAPIServerSendsOnlyTheShard(t *testing.T) {
	leases, err := controlPlane.Kube.CoordinationV1().Leases("default").List(t.Context(),
		metav1.ListOptions{ShardSelector: half(0).String()})
	if known := err == nil && leases.ShardInfo != nil; known != (*gates != "") {
		t.Errorf("a list of Leases has shardInfo: got %v (%v), want %v", known, err, *gates != "")
	}
	const all = 12
	foos := controlPlane.Foos.SamplecontrollerV1alpha1()
	for i := range all {
		// The hash of a name depends on its first characters.
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%x-team", i)}}
		must.Get(controlPlane.Kube.CoreV1().Namespaces().Create(
			t.Context(), namespace, metav1.CreateOptions{}))(t)
		must.Get(foos.Foos(namespace.Name).Create(t.Context(), &v1alpha1.Foo{
			ObjectMeta: metav1.ObjectMeta{Name: "web"},
			Spec:       v1alpha1.FooSpec{DeploymentName: "web", Replicas: new(int32(1))},
		}, metav1.CreateOptions{}))(t)
	}
	got, total := 0, 0
	for index := range 2 {
		part := must.Get(foos.Foos("").List(t.Context(),
			metav1.ListOptions{ShardSelector: half(index).String()}))(t)
		if part.ShardInfo != nil {
			t.Errorf("the list of Foos says %v: then internal/extra/shards may ask there", part.ShardInfo)
		}
		total += len(part.Items)
		for _, foo := range part.Items {
			if must.Get(half(index).Matches(&foo))(t) {
				got++
			}
		}
	}
	want := all
	if *gates == "" {
		want *= 2 // everything, for each shard
	}
	if got != all || total != want {
		t.Errorf("the lists of both shards have %d Foos, %d of them where we expect them, "+
			"want %d and %d", total, got, want, all)
	}
}
