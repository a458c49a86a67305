package faults

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
)

const (
	root = "../../"
	bin  = root + ".local/bin/"
)

var (
	seed   = flag.Uint64("seed", 0, "`number` that all random choices come from (default: the time)")
	rounds = flag.Int("rounds", 1, "how often to run each history, with another seed each time")
	foos   = flag.Int("foos", 30, "how many Foos there are in a history")
	steps  = flag.Int("steps", 80, "how many things the users do in a history, in a row")
	every  = flag.Duration("every", 2*time.Second, "how often something is killed, on average")
	quiet  = flag.Duration("quiet", 3*time.Second,
		"how long nothing may be written in the end")
	patience = flag.Duration("patience", 90*time.Second,
		"how long to wait for what has to happen")
	controllerPath = flag.String("controller", bin+"sample-controller",
		"`path` of the controller under test")
	clusterName = flag.String("cluster", "faults",
		"`name` for hack/cluster of the cluster to start, and to stop in the end")
)

// The clients of the users, past the proxy, and a folder that is deleted in the end.
var (
	kubeClient kubernetes.Interface
	fooClient  clientset.Interface
	kubeconfig string
	tempDir    string
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

// runTests runs the tests between the start and the end of the cluster.
func runTests(m *testing.M) (code int, err error) {
	if tempDir, err = os.MkdirTemp("", "faults"); err != nil {
		return 1, err
	}
	defer os.RemoveAll(tempDir)
	stop, err := startCluster()
	if err != nil {
		return 1, err
	}
	defer stop()
	if err := connect(); err != nil {
		return 1, err
	}
	if err := installCRD(); err != nil {
		return 1, err
	}
	code = m.Run()
	fmt.Println(&total)
	return code, nil
}

// startCluster starts the cluster, and a process that stops it when stop is called or when this
// process ends, however it ends: the pipe to it is closed then.
func startCluster() (stop func(), err error) {
	script, err := filepath.Abs(root + "hack/cluster")
	if err != nil {
		return nil, err
	}
	guard := exec.Command("sh", "-c", `cat; exec "$0" down "$1"`, script, *clusterName)
	guard.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C is not for it
	pipe, err := guard.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := guard.Start(); err != nil {
		return nil, err
	}
	stop = func() {
		pipe.Close()
		_ = guard.Wait() // there is nobody left to do anything about an error
	}
	log := filepath.Join(tempDir, "cluster.log")
	err = run(log, script, "up", *clusterName)
	if err != nil {
		stop()
		return nil, err
	}
	kubeconfig = filepath.Join(clusterDir(), "kubeconfig.yaml")
	return stop, nil
}

// clusterDir returns the folder where hack/cluster keeps the cluster.
func clusterDir() string {
	dir, _ := filepath.Abs(root + ".local/clusters/" + *clusterName) // startCluster did the same
	return dir
}

// run runs a program that prints to the file log: a pipe would be held open by what it starts.
func run(log, path string, args ...string) error {
	file, err := os.Create(log)
	if err != nil {
		return err
	}
	defer file.Close()
	command := exec.Command(path, args...)
	command.Stdout, command.Stderr = file, file
	if err := command.Run(); err != nil {
		output, _ := os.ReadFile(log)
		return fmt.Errorf("%s %v: %w: %s", path, args, err, output)
	}
	return nil
}

// connect makes the clients.
func connect() error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1 // no limit on this side
	config.Timeout = 10 * time.Second
	if kubeClient, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	fooClient, err = clientset.NewForConfig(config)
	return err
}

// installCRD installs the CustomResourceDefinition and waits until Foos are served.
func installCRD() error {
	err := run(filepath.Join(tempDir, "kubectl.log"), bin+"kubectl", "--kubeconfig", kubeconfig,
		"--cache-dir", filepath.Join(tempDir, "cache"),
		"apply", "--server-side", "-f", root+"artifacts/examples/crd.yaml")
	if err != nil {
		return err
	}
	return waitUntil(func() error {
		foos := fooClient.SamplecontrollerV1alpha1().Foos(metav1.NamespaceAll)
		_, err := foos.List(context.Background(), metav1.ListOptions{})
		return err
	})
}

// waitUntil calls check until it returns nil, or for so long that its error is returned.
func waitUntil(check func() error) error {
	for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		err := check()
		if err == nil || time.Since(begin) > *patience {
			return err
		}
	}
}
