// Package cluster starts a local control plane for as long as this program runs, and gives access
// to the control plane's processes.
package cluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"example.com/sample-controller/internal/testing/cleanup"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
)

// crdTimeout is how long the API server may take to serve a new resource.
const crdTimeout = 2 * time.Minute

// Cluster is a control plane that hack/cluster has started.
type Cluster struct {
	// Dir is the folder where hack/cluster keeps its files: bin, logs, pids.
	Dir string

	// The administrator's clients. InstallCRD makes them.
	Kube kubernetes.Interface
	Foos clientset.Interface

	root string
	stop func()
}

// Main is for TestMain. It starts a cluster where Foos are served, calls test, and stops the
// cluster. Then this process ends with the code that test has returned.
func Main(root, name string, test func(*Cluster) (code int, err error)) {
	code, err := with(root, name, test)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		code = 1
	}
	os.Exit(code)
}

// with calls test with a cluster where Foos are served, and stops the cluster.
func with(root, name string, test func(*Cluster) (code int, err error)) (code int, err error) {
	c, err := Start(root, name)
	if err != nil {
		return 1, err
	}
	defer c.Stop()
	if err := c.InstallCRD(); err != nil {
		return 1, err
	}
	return test(c)
}

// Start starts the cluster of that name with hack/cluster of the repository at root. The cluster
// stops with Stop or with this process, even if that is killed.
func Start(root, name string) (*Cluster, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	script := filepath.Join(root, "hack/cluster")
	stop, err := cleanup.Prepare(root, script, "down", name)
	if err != nil {
		return nil, err
	}
	c := &Cluster{Dir: filepath.Join(root, ".local/clusters", name), root: root, stop: stop}
	if err := run(exec.Command(script, "up", name)); err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}

// Check returns nil if all components are alive, or else an error that says what is dead.
func (c *Cluster) Check() error { return c.script("check") }

// Kill kills a server, such as etcd or kube-apiserver.
func (c *Cluster) Kill(server string) error { return c.script("kill-server", server) }

// Mend starts the servers that were killed.
func (c *Cluster) Mend() error { return c.script("start-server") }

// PID returns the process ID of a component that is alive.
func (c *Cluster) PID(component string) (int, error) {
	text, err := os.ReadFile(filepath.Join(c.Dir, "pids", component+".pid"))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

// script runs a command of hack/cluster.
func (c *Cluster) script(command string, args ...string) error {
	args = append([]string{command, filepath.Base(c.Dir)}, args...)
	return run(exec.Command(filepath.Join(c.root, "hack/cluster"), args...))
}

// Stop stops the cluster and deletes its state.
func (c *Cluster) Stop() { c.stop() }

// Kubeconfig returns the path of the administrator's kubeconfig.
func (c *Cluster) Kubeconfig() string { return filepath.Join(c.Dir, "kubeconfig.yaml") }

// AuditLog returns the path of the API server's audit log.
func (c *Cluster) AuditLog() string { return filepath.Join(c.Dir, "logs", "audit.log") }

// Config returns the administrator's configuration, without a limit on requests.
func (c *Cluster) Config() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	config.Timeout = 30 * time.Second
	return config, nil
}

// InstallCRD installs the CustomResourceDefinition and waits until Foos are served.
func (c *Cluster) InstallCRD() error {
	kubectl := exec.Command(filepath.Join(c.root, ".local/bin/kubectl"),
		"--kubeconfig", c.Kubeconfig(), "--cache-dir", filepath.Join(c.Dir, "cache"),
		"apply", "--server-side", "-f", filepath.Join(c.root, "artifacts/examples/crd.yaml"))
	if err := run(kubectl); err != nil {
		return err
	}
	config, err := c.Config()
	if err != nil {
		return err
	}
	if c.Kube, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	if c.Foos, err = clientset.NewForConfig(config); err != nil {
		return err
	}
	foos := c.Foos.SamplecontrollerV1alpha1().Foos(metav1.NamespaceAll)
	return WaitUntil(crdTimeout, 50*time.Millisecond, func() error {
		_, err := foos.List(context.Background(), metav1.ListOptions{Limit: 1})
		return err
	})
}

// WaitUntil calls check, with pauses, until it returns nil. After patience, it returns the error of
// check.
func WaitUntil(patience, pause time.Duration, check func() error) error {
	for begin := time.Now(); ; time.Sleep(pause) {
		err := check()
		if err == nil || time.Since(begin) > patience {
			return err
		}
	}
}

// run runs command. Its output goes to a file: what it starts would hold a pipe open.
func run(command *exec.Cmd) error {
	output, err := os.CreateTemp("", "cluster")
	if err != nil {
		return err
	}
	defer os.Remove(output.Name())
	defer output.Close()
	command.Stdout, command.Stderr = output, output
	if err := command.Run(); err != nil {
		text, _ := os.ReadFile(output.Name())
		return fmt.Errorf("%v: %w: %s", command, err, text)
	}
	return nil
}
