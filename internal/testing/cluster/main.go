package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// Main is for TestMain. It starts a cluster where the objects of the CustomResourceDefinition in a file
// are served, calls test, and stops the cluster. Then this process ends with the code that test has
// returned.
func Main(root, crd string, test func(*Cluster) (code int, err error)) {
	code, err := with(root, crd, test)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func with(root, crd string, test func(*Cluster) (code int, err error)) (code int, err error) {
	c, err := Start(root, NewName())
	if err != nil {
		return 1, err
	}
	defer c.Stop()
	if err := c.Install(crd); err != nil {
		return 1, err
	}
	return test(c)
}

// Install installs the CustomResourceDefinition in a file, and waits until its objects are served.
func (c *Cluster) Install(crd string) error {
	return Install(func(args ...string) *exec.Cmd {
		return exec.Command(filepath.Join(c.root, ".local/bin/kubectl"), append([]string{
			"--kubeconfig", c.Kubeconfig(), "--cache-dir", filepath.Join(c.Dir, "cache")}, args...)...)
	}, crd)
}

// Check returns nil if all components are alive, or else an error that says what is dead.
func (c *Cluster) Check() error { return c.script("check") }

// PID returns the process ID of a component that is alive.
func (c *Cluster) PID(component string) (int, error) {
	text, err := os.ReadFile(filepath.Join(c.Dir, "pids", component+".pid"))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

// AuditLog returns the path of the API server's audit log.
func (c *Cluster) AuditLog() string { return filepath.Join(c.Dir, "logs", "audit.log") }
