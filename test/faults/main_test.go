package faults

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
	seed      = flag.Uint64("seed", 0, "`number` that all random choices come from (default: the time)")
	rounds    = flag.Int("rounds", 1, "how often to run each history, with other random choices")
	foos      = flag.Int("foos", 30, "number of Foos in a history")
	steps     = flag.Int("steps", 80, "number of things that the users do in a history")
	every     = flag.Bool("every", false, "run all cases of the tests of every fault; takes minutes")
	killEvery = flag.Duration("kill-every", 2*time.Second,
		"how often something is killed in a history, on average")
	quiet = flag.Duration("quiet", 3*time.Second,
		"how long nothing may be written at the end")
	patience = flag.Duration("patience", 90*time.Second,
		"how long to wait for an expected change")
	controllerPath = flag.String("controller", root+".local/bin/sample-controller",
		"`path` of the controller under test")
	clusterName = flag.String("cluster", "faults",
		"`name` of the cluster that hack/cluster starts, and stops at the end")
)

// The clients of the users, which bypass the proxy, and a folder that is deleted at the end.
var (
	controlPlane *cluster.Cluster
	kubeClient   kubernetes.Interface
	fooClient    clientset.Interface
	tempDir      string
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "8") // the tests mostly wait
	flag.Parse()
	if *seed == 0 {
		*seed = uint64(time.Now().Unix())
	}
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		code = 1
	}
	os.Exit(code)
}

// runTests starts the cluster, runs the tests, and stops the cluster.
func runTests(m *testing.M) (code int, err error) {
	if tempDir, err = os.MkdirTemp("", "faults"); err != nil {
		return 1, err
	}
	defer os.RemoveAll(tempDir)
	if controlPlane, err = cluster.Start(root, *clusterName); err != nil {
		return 1, err
	}
	defer controlPlane.Stop()
	if err := controlPlane.InstallCRD(); err != nil {
		return 1, err
	}
	if err := connect(); err != nil {
		return 1, err
	}
	code = m.Run()
	fmt.Println(&total)
	return code, nil
}

// connect creates the clients.
func connect() error {
	config, err := controlPlane.Config()
	if err != nil {
		return err
	}
	if kubeClient, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	fooClient, err = clientset.NewForConfig(config)
	return err
}

// waitUntil calls check until it returns nil. After -patience, it returns the error of check.
func waitUntil(check func() error) error {
	for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		err := check()
		if err == nil || time.Since(begin) > *patience {
			return err
		}
	}
}
