package suite

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"

	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/process"
	"example.com/sample-controller/internal/testing/suite/audit"
)

// Program is a running controller. It acts as its own user, so the audit log shows what this
// process did.
type Program struct {
	*process.Process
	User string
}

// start starts the controller with additional flags. It finds the cluster through a copy of the
// kubeconfig, to which change is applied.
func start(flags string, change func(*clientcmdapi.Config)) (*Program, error) {
	user := "conformance-" + utilrand.String(8)
	loaded, err := clientcmd.NewDefaultClientConfigLoadingRules().Load()
	if err != nil {
		return nil, err
	}
	path, err := process.WriteKubeconfig(tempDir, loaded, user, change)
	if err != nil {
		return nil, fmt.Errorf("writing a kubeconfig: %w", err)
	}
	command := exec.Command("sh", "-c",
		fmt.Sprintf("exec %s %s %s", controllerCommand, flags, config.Flags))
	started, err := process.Start(command, path)
	if err != nil {
		return nil, err
	}
	return &Program{Process: started, User: user}, nil
}

// StartProgram starts a controller for t alone. It ends with t at the latest. Unless change is nil,
// it changes the kubeconfig.
func StartProgram(t *testing.T, flags string, change func(*clientcmdapi.Config)) *Program {
	t.Helper()
	if shared != nil {
		t.Fatal("another controller runs already, that of the parallel tests: if such a test has " +
			"parts, it has to call t.Parallel itself")
	}
	p := must.Get(start(flags, change))(t)
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("output of the controller:\n%s", p.Output())
		}
	})
	return p
}

// In returns a function that makes n the namespace of the kubeconfig, and so, by default, of the
// Lease.
func In(n *Namespace) func(*clientcmdapi.Config) {
	return func(config *clientcmdapi.Config) {
		for _, context := range config.Contexts {
			context.Namespace = n.Name
		}
	}
}

// shared is the controller of all parallel tests. The first of them starts it.
var (
	shared      *Program
	startShared = sync.OnceValue(func() (err error) {
		if err := awaitCollector(); err != nil {
			return err
		}
		shared, err = start("", nil)
		return err
	})
)

// checkShared returns an error if the shared controller has exited by itself.
func checkShared() error {
	if shared == nil {
		return nil
	}
	select {
	case <-shared.Exited:
		return errors.New("the controller under test has exited; its output is printed at the end")
	default:
		return nil
	}
}

// Now returns the end of the audit log, where the next request will be noted.
func Now(t *testing.T) audit.Mark {
	t.Helper()
	return must.Get(audit.End(auditLogPath))(t)
}

// Requests returns the requests of p that stand after a mark in the audit log and for which selects
// returns true.
func (p *Program) Requests(
	t *testing.T, after audit.Mark, selects func(audit.Request) bool,
) (found []audit.Request) {
	t.Helper()
	requests, _, err := audit.Read(auditLogPath, after, p.User)
	must.Do(t, err)
	for _, r := range requests {
		if r.User() == p.User && selects(r) {
			found = append(found, r)
		}
	}
	return found
}

// Has reports whether r is about an object in the namespace.
func (n *Namespace) Has(r audit.Request) bool { return r.ObjectRef.Namespace == n.Name }

// Requests returns the requests of the shared controller in the namespace.
func (n *Namespace) Requests(after audit.Mark) []audit.Request {
	n.T.Helper()
	return shared.Requests(n.T, after, n.Has)
}

// isAbout reports whether r is about objects of that name, or about Events of these objects.
func isAbout(r audit.Request, name string) bool {
	return r.ObjectRef.Name == name || strings.HasPrefix(r.ObjectRef.Name, name+".")
}
