// Package shards runs several replicas of the tutorial's program with shards, and kills, freezes
// and stops them while shards move. Then the tests check in the API server's audit log who wrote
// when. They start a control plane of their own.
//
//	go test ./shards -v                 # with shard selectors
//	go test ./shards -v -gates ''       # the API server does not know them
package shards

import (
	"flag"
	"os"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"

	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
	"example.com/sample-controller/test/internal/cluster"
)

const root = "../../"

var (
	gates = flag.String("gates", "ShardedListAndWatch=true",
		"`feature gates` of the API server")
	program = flag.String("program", root+".local/bin/shards", "`path` of the program")
	seed    = flag.Uint64("seed", uint64(time.Now().Unix()),
		"`number` that all random choices come from; default: the time")
	faults = flag.Int("faults", 4, "how many replicas to kill, freeze or stop")
	every  = flag.Duration("every", 3*time.Second, "how often, on average")
	quiet  = flag.Duration("quiet", 3*time.Second,
		"how long nothing may be written at the end")
	patience = flag.Duration("patience", 90*time.Second,
		"how long to wait for an expected change")
)

// The control plane, and the clients of the users.
var (
	controlPlane *cluster.Cluster
	kubeClient   kubernetes.Interface
	fooClient    clientset.Interface
)

func TestMain(m *testing.M) {
	flag.Parse()
	_ = os.Setenv("FEATURE_GATES", *gates)
	cluster.Main(root, "shards", func(c *cluster.Cluster) (code int, err error) {
		controlPlane, kubeClient, fooClient = c, c.Kube, c.Foos
		return m.Run(), nil
	})
}

// waitUntil calls check until it returns nil. After -patience, it fails the test with the error.
func waitUntil(t *testing.T, check func() error) {
	t.Helper()
	if err := cluster.WaitUntil(*patience, 50*time.Millisecond, check); err != nil {
		t.Fatalf("after %v: %v", *patience, err)
	}
}
