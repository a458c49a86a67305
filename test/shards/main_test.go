// Package shards runs several replicas of the tutorial's program with shards, and kills, freezes
// and stops them while shards move. Then the tests check in the API server's audit log who wrote
// when. They start a control plane of their own.
//
//	go test ./shards -v                 # with shard selectors
//	go test ./shards -v -gates ''       # the API server does not know them
package shards

import (
	"flag"
	"fmt"
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
	seed    = flag.Uint64("seed", 0, "`number` that all random choices come from (default: the time)")
	faults  = flag.Int("faults", 4, "how many replicas to kill, freeze or stop")
	every   = flag.Duration("every", 3*time.Second, "how often, on average")
	quiet   = flag.Duration("quiet", 3*time.Second,
		"how long nothing may be written at the end")
	patience = flag.Duration("patience", 90*time.Second,
		"how long to wait for an expected change")
)

// The clients of the users, and a folder that is deleted at the end.
var (
	controlPlane *cluster.Cluster
	kubeClient   kubernetes.Interface
	fooClient    clientset.Interface
	tempDir      string
)

func TestMain(m *testing.M) {
	flag.Parse()
	if *seed == 0 {
		*seed = uint64(time.Now().Unix())
	}
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "shards:", err)
		code = 1
	}
	os.Exit(code)
}

// runTests starts the cluster, runs the tests, and stops the cluster.
func runTests(m *testing.M) (code int, err error) {
	if tempDir, err = os.MkdirTemp("", "shards"); err != nil {
		return 1, err
	}
	defer os.RemoveAll(tempDir)
	if err := os.Setenv("FEATURE_GATES", *gates); err != nil {
		return 1, err
	}
	if controlPlane, err = cluster.Start(root, "shards"); err != nil {
		return 1, err
	}
	defer controlPlane.Stop()
	if err := controlPlane.InstallCRD(); err != nil {
		return 1, err
	}
	config, err := controlPlane.Config()
	if err != nil {
		return 1, err
	}
	if kubeClient, err = kubernetes.NewForConfig(config); err != nil {
		return 1, err
	}
	if fooClient, err = clientset.NewForConfig(config); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// waitUntil calls check until it returns nil. After -patience, it fails the test with the error.
func waitUntil(t *testing.T, check func() error) {
	t.Helper()
	for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		err := check()
		if err == nil {
			return
		}
		if time.Since(begin) > *patience {
			t.Fatalf("after %v: %v", *patience, err)
		}
	}
}
