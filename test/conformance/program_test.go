package conformance

import (
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"testing"

	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"example.com/sample-controller/test/internal/kubeconfig"
	"example.com/sample-controller/test/internal/process"
)

// program is a running controller. It acts as its own user, so the audit log shows what this
// process did.
type program struct {
	*process.Process
	user string
}

// start starts the controller with additional flags. It finds the cluster through a copy of the
// kubeconfig, to which change is applied.
func start(flags string, change func(*clientcmdapi.Config)) (*program, error) {
	user := "conformance-" + utilrand.String(8)
	config, err := clientcmd.NewDefaultClientConfigLoadingRules().Load()
	if err != nil {
		return nil, err
	}
	path, err := kubeconfig.Write(tempDir, config, user, change)
	if err != nil {
		return nil, fmt.Errorf("writing a kubeconfig: %w", err)
	}
	command := exec.Command("sh", "-c", "exec "+*controllerCommand+" "+flags)
	started, err := process.Start(command, path)
	if err != nil {
		return nil, err
	}
	return &program{Process: started, user: user}, nil
}

// startProgram starts a controller for t alone. It ends with t at the latest.
func startProgram(t *testing.T, flags string, change func(*clientcmdapi.Config)) *program {
	t.Helper()
	p, err := start(flags, change)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("output of the controller:\n%s", p.Output())
		}
	})
	return p
}

// stopProgram stops p, and fails t unless p exits with 0.
func stopProgram(t *testing.T, p *program) {
	t.Helper()
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
}

// shared is the controller of all parallel tests. The first of them starts it.
var (
	shared      *program
	startShared = sync.OnceValue(func() (err error) {
		if err := awaitCollector(); err != nil {
			return err
		}
		shared, err = start("", nil)
		return err
	})
)

// errExited is why nothing happens any more.
var errExited = errors.New("the controller under test has exited; its output is printed at the end")

// checkShared returns an error if the shared controller has exited by itself.
func checkShared() error {
	if shared == nil {
		return nil
	}
	select {
	case <-shared.Exited:
		return errExited
	default:
		return nil
	}
}
