// Package suite has what conformance suites share: tests of a controller from the outside, on a
// real API server, with the program as a black box. What is about one kind of objects is in a
// package of tests for that kind, whose TestMain calls Define, flag.Parse and Run.
//
// The program finds the cluster through KUBECONFIG and exits with 0 on SIGTERM. It must be the only
// controller of its kind in the cluster. The tests of how a program starts and ends run one after
// the other, each with its own processes. Then all other tests, which begin with
// [ParallelNamespace], share one process and run in parallel, each in its own namespace.
//
// Some tests are the same for every kind, such as [RestartWritesNothing]. They take a testing.T,
// and what is special about the kind.
package suite

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"example.com/sample-controller/internal/testing/cluster"
	"example.com/sample-controller/internal/testing/setting"
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
	// Build is a line of shell that builds this program, in Root.
	Build string
	// Flags are for each process of the controller, also with -controller. They come last, so they
	// take the place of the arguments in a Deployment. They may be empty.
	Flags string
	// Serial matches the tests that are not parallel. Without a cluster in KUBECONFIG, Run starts one, and
	// another one for these tests: most tests wait, so both halves take not much longer than one.
	Serial string
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

	controllerCommand string
)

// What Run prepares.
var (
	// Cluster is how the tests' own clients find the cluster, as its administrator and without a
	// limit on requests.
	Cluster *rest.Config
	// Kube is such a client.
	Kube kubernetes.Interface

	config                    Config
	auditLogPath, kubectlPath string
	tempDir                   string // deleted at the end
)

// Define says what the suite is about, and defines its flags. It has to come before flag.Parse.
func Define(c Config) {
	config = c
	_ = flag.Set("test.parallel", "8") // even on few processors: the tests mostly wait
	binaries := filepath.Join(c.Root, ".local", "bin") + string(filepath.Separator)
	kubectlPath = binaries + "kubectl"
	flag.StringVar(&controllerCommand, "controller", binaries+c.Controller,
		"`command` that starts the controller under test, relative to this package")
	flag.StringVar(&LeaderFlags, "leader-flags", "--leader-elect --leader-elect-lease-duration=8s "+
		"--leader-elect-renew-deadline=6s --leader-elect-retry-period=500ms",
		"`flags` that switch on leader election, with a Lease of 8s")
	flag.DurationVar(&Patience, "patience", setting.Patience(),
		"how long to wait for an expected change")
}

// Run prepares the cluster, runs the tests, and stops the controller that the parallel tests share.
// It returns the exit code.
func Run(m *testing.M) (code int) {
	nothing := func() error { return nil }
	others, hurry := nothing, nothing // hurry ends waits of a cluster that is started here
	if os.Getenv(clientcmd.RecommendedConfigPathEnvVar) == "" {
		others = startSerial()
		c, err := cluster.Start(config.Root, cluster.NewName())
		if err != nil {
			fmt.Fprintln(os.Stderr, "conformance:", errors.Join(err, others()))
			return 1
		}
		defer c.Stop()
		os.Setenv(clientcmd.RecommendedConfigPathEnvVar, c.Kubeconfig())
		hurry = c.Hurry
	}
	code, err := run(m, hurry)
	if err = errors.Join(err, others()); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		return 1
	}
	return code
}

// startSerial starts a process for the serial tests, unless flags choose some tests. It returns a
// function that waits for it, and prints what the process has printed.
func startSerial() (wait func() error) {
	for _, chosen := range []string{"test.run", "test.skip"} {
		if config.Serial == "" || flag.Lookup(chosen).Value.String() != "" {
			return func() error { return nil }
		}
	}
	var output bytes.Buffer
	serial := exec.Command(os.Args[0], append(os.Args[1:], "-test.run="+config.Serial, "-test.testlogfile=")...)
	serial.Stdout, serial.Stderr = &output, &output
	err := serial.Start()
	_ = flag.Set("test.skip", config.Serial)
	return func() error {
		if err == nil {
			err = serial.Wait()
		}
		_, _ = output.WriteTo(os.Stdout)
		return err
	}
}

// Build runs line in root, which builds the controller, unless -controller names another one.
func Build(root, line string) error {
	if name := flag.Lookup("controller"); name.Value.String() != name.DefValue {
		return nil
	}
	command := exec.Command("hack/env", "-c", line)
	command.Dir = root
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", line, err, output)
	}
	return nil
}

func run(m *testing.M, hurry func() error) (code int, err error) {
	if tempDir, err = os.MkdirTemp("", "conformance"); err != nil {
		return 1, err
	}
	defer os.RemoveAll(tempDir)
	for _, prepare := range []func() error{
		func() error { return Build(config.Root, config.Build) },
		connect, installCRD, hurry, makeOrphan, checkControlPlane,
	} {
		if err := prepare(); err != nil {
			return 1, err
		}
	}
	code = m.Run()
	if installed {
		err = kubectlCommand("delete", "namespace", config.Name, "--ignore-not-found", "--wait=false").Run()
	}
	if shared == nil {
		return code, err
	}
	err = errors.Join(err, shared.Stop())
	if code != 0 || err != nil {
		fmt.Fprintf(os.Stderr, "--- output of the shared controller:\n%s\n", shared.Output())
	}
	return code, err
}
