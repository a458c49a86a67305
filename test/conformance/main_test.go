package conformance

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
)

const (
	binaries     = "../../.local/bin/"
	crd          = "../../artifacts/examples/crd.yaml"
	startCluster = "run 'make conformance', or start a cluster with 'hack/cluster up test' and " +
		"set KUBECONFIG as it says"
)

var (
	controllerCommand = flag.String("controller", binaries+
		"sample-controller --metrics-bind-address=0 --health-probe-bind-address=0",
		"`command` that starts the controller under test, relative to this package")
	leaderFlags = flag.String("leader-flags", "--leader-elect --leader-elect-lease-duration=8s "+
		"--leader-elect-renew-deadline=6s --leader-elect-retry-period=500ms",
		"`flags` that switch on leader election, with a Lease of 8s")
	auditLogPath = flag.String("audit-log", "",
		"`file` with the API server's audit log (default: logs/audit.log beside the kubeconfig)")
	kubectlPath = flag.String("kubectl", binaries+"kubectl", "`path` of kubectl")
	patience    = flag.Duration("patience", 30*time.Second,
		"how long to wait for an expected change")
	idleFoos = flag.Int("idle-foos", 100, "number of Foos in the test of an idle controller")
	idleTime = flag.Duration("idle-time", 3*time.Second,
		"how long an idle controller must request nothing")
)

// The tests' own clients, and a folder that is deleted at the end.
var (
	kubeClient kubernetes.Interface
	fooClient  clientset.Interface
	tempDir    string
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "8") // even on few processors: the tests mostly wait
	flag.Parse()
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		code = 1
	}
	os.Exit(code)
}

// runTests prepares the cluster, runs the tests, and stops the controller that the parallel tests
// share.
func runTests(m *testing.M) (code int, err error) {
	if tempDir, err = os.MkdirTemp("", "conformance"); err != nil {
		return 1, err
	}
	defer os.RemoveAll(tempDir)
	if err := connect(); err != nil {
		return 1, err
	}
	if err := installCRD(); err != nil {
		return 1, err
	}
	if err := makeOrphan(); err != nil {
		return 1, err
	}
	if err := checkControlPlane(); err != nil {
		return 1, err
	}
	code = m.Run()
	if *tableFile != "" {
		if err := writeTable(*tableFile, *programID); err != nil {
			return 1, fmt.Errorf("writing the table: %w", err)
		}
	}
	if shared == nil {
		return code, nil
	}
	err = shared.Stop()
	if code != 0 || err != nil {
		fmt.Fprintf(os.Stderr, "--- output of the shared controller:\n%s\n", shared.Output())
	}
	return code, err
}

// connect creates the clients and checks that the API server answers.
func connect() error {
	kubeconfig := os.Getenv(clientcmd.RecommendedConfigPathEnvVar)
	if kubeconfig == "" {
		return fmt.Errorf("KUBECONFIG is not set; %s", startCluster)
	}
	if *auditLogPath == "" {
		*auditLogPath = filepath.Join(filepath.Dir(kubeconfig), "logs", "audit.log")
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w; %s", err, startCluster)
	}
	config.QPS = -1 // no limit in the client
	if kubeClient, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	if fooClient, err = clientset.NewForConfig(config); err != nil {
		return err
	}
	return ping(config)
}

// ping checks that the API server answers. Its error says what to do.
func ping(config *rest.Config) error {
	ctx, cancel := context.WithTimeout(context.Background(), preparation())
	defer cancel()
	_, err := kubeClient.Discovery().RESTClient().Get().AbsPath("/version").DoRaw(ctx)
	if err != nil {
		err = fmt.Errorf("the API server at %s does not answer: %w; %s",
			config.Host, err, startCluster)
	}
	return err
}

// installCRD installs the CustomResourceDefinition and waits until Foos are served.
func installCRD() error {
	if _, err := os.Stat(*kubectlPath); err != nil {
		return fmt.Errorf("no kubectl: %w; build it with 'hack/cluster build' or set -kubectl", err)
	}
	apply := []string{"apply", "--server-side", "--force-conflicts", "-f", crd}
	if output, err := kubectlCommand(apply...).CombinedOutput(); err != nil {
		return fmt.Errorf("installing the CRD: %w: %s", err, output)
	}
	var err error
	for begin := time.Now(); time.Since(begin) < preparation(); time.Sleep(interval) {
		foos := fooClient.SamplecontrollerV1alpha1().Foos(metav1.NamespaceAll)
		if _, err = foos.List(context.Background(), metav1.ListOptions{}); err == nil {
			return nil
		}
	}
	return fmt.Errorf("the API server does not serve Foos: %w", err)
}

// kubectlCommand returns a kubectl that keeps its cache out of the user's home.
func kubectlCommand(args ...string) *exec.Cmd {
	command := exec.Command(*kubectlPath, args...)
	command.Env = append(os.Environ(), "KUBECACHEDIR="+filepath.Join(tempDir, "cache"))
	return command
}

// kubectl runs kubectl in the namespace, with stdin as its input, and returns what it printed.
func kubectl(t *testing.T, namespace, stdin string, args ...string) (output string, err error) {
	t.Helper()
	command := kubectlCommand(append([]string{"--namespace", namespace}, args...)...)
	command.Stdin = strings.NewReader(stdin)
	out, err := command.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}
