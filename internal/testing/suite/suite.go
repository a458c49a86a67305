// Package suite has what conformance suites share: tests of a controller from the outside, on a
// real API server, with the program as a black box. What is about one kind of objects is in a
// package of tests for that kind, which begins with
//
//	func TestMain(m *testing.M) {
//		suite.Define(suite.Config{Kind: "Foo", ...})
//		flag.Parse()
//		os.Exit(suite.Run(m))
//	}
//
// The program finds the cluster through KUBECONFIG and exits with 0 on SIGTERM. It must be the only
// controller of its kind in the cluster. The tests of how a program starts and ends run one after
// the other, each with its own processes. Then all other tests, which begin with
// [ParallelNamespace], share one process and run in parallel, each in its own namespace.
//
// Some tests are the same for every kind, such as [StoppedLeaderFreesTheLease]. They take a
// testing.T, and what is special about the kind.
package suite

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Config is what is special about a suite. Paths are relative to its package.
type Config struct {
	// APIVersion, Kind and Resource are the names of the custom resource: "example.com/v1", "Foo" and
	// "foos".
	APIVersion, Kind, Resource string
	// Name is that of the deployed controller, of its namespace and of its ServiceAccount.
	Name string
	// CRD is the path of the file with the CustomResourceDefinition.
	CRD string
	// Root is the path of the repository. Its .local/bin has kubectl and the controller.
	Root string
	// Controller is the command that starts the controller, unless -controller says another. Its path
	// is relative to .local/bin.
	Controller string
	// Flags are for each process of the controller, also with -controller. They come last, so they
	// take the place of the arguments in a Deployment. They may be empty.
	Flags string
	// Command is what a user can run to start a cluster and this suite on it.
	Command string
	// Create creates an object of that name, for which the controller has to write something.
	Create func(n *Namespace, name string)
	// Await waits until the controller has done all that it has to do for an object of Create.
	Await func(n *Namespace, name string)
}

// What the flags of the suite say.
var (
	// Patience is how long to wait for an expected change.
	Patience time.Duration
	// LeaderFlags are flags of the controller that switch on leader election.
	LeaderFlags string

	controllerCommand, auditLogPath, kubectlPath string
	idleTime                                     time.Duration
)

// What Run prepares.
var (
	// Cluster is how the tests' own clients find the cluster, as its administrator and without a
	// limit on requests.
	Cluster *rest.Config
	// Kube is such a client.
	Kube kubernetes.Interface

	config  Config
	tempDir string // deleted at the end
)

// Define says what the suite is about, and defines its flags. It has to come before flag.Parse.
func Define(c Config) {
	config = c
	_ = flag.Set("test.parallel", "8") // even on few processors: the tests mostly wait
	binaries := filepath.Join(c.Root, ".local", "bin") + string(filepath.Separator)
	flag.StringVar(&controllerCommand, "controller", binaries+c.Controller,
		"`command` that starts the controller under test, relative to this package")
	flag.StringVar(&LeaderFlags, "leader-flags", "--leader-elect --leader-elect-lease-duration=8s "+
		"--leader-elect-renew-deadline=6s --leader-elect-retry-period=500ms",
		"`flags` that switch on leader election, with a Lease of 8s")
	flag.StringVar(&auditLogPath, "audit-log", "",
		"`file` with the API server's audit log (default: logs/audit.log beside the kubeconfig)")
	flag.StringVar(&kubectlPath, "kubectl", binaries+"kubectl", "`path` of kubectl")
	flag.DurationVar(&Patience, "patience", 30*time.Second,
		"how long to wait for an expected change")
	flag.DurationVar(&idleTime, "idle-time", 3*time.Second,
		"how long an idle controller must request nothing")
}

// Run prepares the cluster, runs the tests, and stops the controller that the parallel tests share.
// It returns the exit code.
func Run(m *testing.M) (code int) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		return 1
	}
	return code
}

func run(m *testing.M) (code int, err error) {
	if tempDir, err = os.MkdirTemp("", "conformance"); err != nil {
		return 1, err
	}
	defer os.RemoveAll(tempDir)
	for _, prepare := range []func() error{connect, installCRD, makeOrphan, checkControlPlane} {
		if err := prepare(); err != nil {
			return 1, err
		}
	}
	code = m.Run()
	if installed {
		err = kubectlCommand("delete", "namespace", config.Name, "--ignore-not-found", "--wait=false").Run()
	}
	if shared == nil || err != nil {
		return code, err
	}
	err = shared.Stop()
	if code != 0 || err != nil {
		fmt.Fprintf(os.Stderr, "--- output of the shared controller:\n%s\n", shared.Output())
	}
	return code, err
}

// groupVersion returns the group and version of the custom resource.
func groupVersion() schema.GroupVersion {
	return schema.FromAPIVersionAndKind(config.APIVersion, config.Kind).GroupVersion()
}
