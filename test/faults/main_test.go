// Package faults runs a controller of Foos while everything around it fails. Then the tests check
// that, when it is quiet again, every Foo has exactly its Deployment, statuses are true, nothing is
// orphaned, and nothing more is written.
//
//	make faults-long                    # the long version
//	go test ./faults -v                 # the short one
//	go test ./faults -v -seed 7         # the random choices of seed 7
//
// The tests start a cluster of their own, because they kill its etcd and its API server. Between
// the controller and the API server, a proxy injects faults. Users who create, change and delete
// Foos and Deployments talk to the API server directly. All random choices come from the seed, but
// when they take effect depends on the machine: a replay is similar, not identical.
//
// TestExplore in the root's folder leaves less to chance: the controller dies at each request.
package faults

import (
	"context"
	"flag"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"example.com/sample-controller/internal/testing/cluster"
	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/setting"
	"example.com/sample-controller/internal/testing/suite"
	"example.com/sample-controller/internal/testing/suite/audit"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
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
	quiet    = flag.Duration("quiet", 3*time.Second, "how long nothing may be written at the end")
	patience = flag.Duration("patience", setting.Patience(),
		"how long to wait for an expected change")
	controllerPath = flag.String("controller", root+".local/bin/sample-controller",
		"`path` of the controller under test")
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
	cluster.Main(root, root+"artifacts/examples/crd.yaml", func(c *cluster.Cluster) (code int, err error) {
		if err := suite.Build(root, "make -s build"); err != nil {
			return 1, err
		}
		controlPlane, kubeClient, fooClient = c, c.Kube, clientset.NewForConfigOrDie(c.Config)
		return m.Run(), nil
	})
}

// waitUntil calls check until it returns nil. After -patience, it returns the error of check.
func waitUntil(check func() error) error {
	return cluster.WaitUntil(*patience, 50*time.Millisecond, check)
}

// restart kills a server of the cluster, and starts it again after a pause. It returns when Foos
// are served again.
func restart(server string, pause time.Duration) error {
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

// isWrite reports whether r is a write, accepted or refused, to anything but the Lease.
func isWrite(r audit.Request) bool { return r.IsWrite() && r.ObjectRef.Resource != "leases" }

func isCreation(r audit.Request) bool { return r.Creates("deployments") }

func isDeletion(r audit.Request) bool { return r.What() == "delete deployments" && r.Succeeded() }

// now returns the end of the audit log, where the next request will be noted.
func now(t *testing.T) audit.Mark {
	t.Helper()
	return must.Get(audit.End(controlPlane.AuditLog()))(t)
}

// requests returns the user's requests in the namespace that stand after a mark in the audit log
// and for which selects returns true.
func (h *history) requests(
	after audit.Mark, user string, selects func(audit.Request) bool,
) (found []audit.Request) {
	h.t.Helper()
	requests, _, err := audit.Read(controlPlane.AuditLog(), after, user)
	must.Do(h.t, err)
	for _, r := range requests {
		if r.User() == user && r.ObjectRef.Namespace == h.namespace && selects(r) {
			found = append(found, r)
		}
	}
	return found
}
