// Package cluster starts a local control plane for as long as this program runs, and kills its servers.
package cluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"example.com/sample-controller/internal/testing/process"
)

// crdTimeout is how long the API server may take to serve a new resource.
const crdTimeout = 2 * time.Minute

// Cluster is a control plane that hack/cluster has started.
type Cluster struct {
	// Dir is the folder where hack/cluster keeps its files: bin, logs, pids.
	Dir string

	// Config is the administrator's, without a limit on requests, and Kube such a client.
	Config *rest.Config
	Kube   kubernetes.Interface

	root string
	stop func()
}

// NewName returns a name that no other cluster has while this process runs.
func NewName() string { return fmt.Sprintf("test-%d", os.Getpid()) }

// Start starts the cluster of that name with hack/cluster of the repository at root. The cluster
// stops with Stop or with this process, even if that is killed.
func Start(root, name string) (*Cluster, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	script := filepath.Join(root, "hack/cluster")
	stop, err := process.Prepare(root, script, "down", name)
	if err != nil {
		return nil, err
	}
	c := &Cluster{Dir: filepath.Join(root, ".local/clusters", name), root: root, stop: stop}
	if err := run(exec.Command(script, "up", name)); err != nil {
		c.Stop()
		return nil, err
	}
	if c.Config, err = clientcmd.BuildConfigFromFlags("", c.Kubeconfig()); err == nil {
		c.Config.QPS, c.Config.Timeout = -1, 30*time.Second
		c.Kube, err = kubernetes.NewForConfig(c.Config)
	}
	return c, err
}

// Kill kills a server, such as etcd or kube-apiserver.
func (c *Cluster) Kill(server string) error { return c.script("kill-server", server) }

// Mend starts the servers that were killed.
func (c *Cluster) Mend() error { return c.script("start-server") }

// Hurry starts Kubernetes' own controllers again, which ends what they wait for: the garbage collector
// looks for new kinds every 30 s, and all of them wait longer after each error, up to 1000 s.
func (c *Cluster) Hurry() error {
	return errors.Join(c.Kill("kube-controller-manager"), c.Kill("kube-scheduler"), c.Mend())
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

// Install installs the CustomResourceDefinition in a file with kubectl, and waits until its objects are
// served.
func Install(kubectl func(args ...string) *exec.Cmd, crd string) error {
	err := run(kubectl("apply", "--server-side", "--force-conflicts", "-f", crd))
	if err != nil {
		return err
	}
	name, err := kubectl("get", "-f", crd, "-o", "jsonpath={.metadata.name}").Output()
	if err != nil {
		return err
	}
	return WaitUntil(crdTimeout, 50*time.Millisecond, func() error {
		return run(kubectl("get", string(name)))
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
