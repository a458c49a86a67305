package faults

import (
	"context"
	"flag"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
	"example.com/sample-controller/test/internal/cluster"
)

const root = "../../"

var (
	seed = flag.Uint64("seed", uint64(time.Now().Unix()),
		"`number` that all random choices come from; default: the time")
	rounds    = flag.Int("rounds", 1, "how often to run each history, with other random choices")
	foos      = flag.Int("foos", 30, "number of Foos in a history")
	steps     = flag.Int("steps", 80, "number of things that the users do in a history")
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

// The control plane, and the clients of the users, which bypass the proxy.
var (
	controlPlane *cluster.Cluster
	kubeClient   kubernetes.Interface
	fooClient    clientset.Interface
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "8") // the tests mostly wait
	flag.Parse()
	cluster.Main(root, *clusterName, func(c *cluster.Cluster) (code int, err error) {
		controlPlane, kubeClient, fooClient = c, c.Kube, c.Foos
		code = m.Run()
		fmt.Println(&total)
		return code, nil
	})
}

// waitUntil calls check until it returns nil. After -patience, it returns the error of check.
func waitUntil(check func() error) error {
	return cluster.WaitUntil(*patience, 50*time.Millisecond, check)
}

// restart kills a server of the cluster, and starts it again after a pause. It returns when Foos
// are served again.
func restart(server string, pause time.Duration) error {
	total.count(server + " killed")
	if err := controlPlane.Kill(server); err != nil {
		return err
	}
	time.Sleep(pause) // the server is away for this long
	if err := controlPlane.Mend(); err != nil {
		return err
	}
	return waitUntil(func() error {
		foos := fooClient.SamplecontrollerV1alpha1().Foos(metav1.NamespaceAll)
		_, err := foos.List(context.Background(), metav1.ListOptions{Limit: 1})
		return err
	})
}
