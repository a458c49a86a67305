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

// program is a running controller. The API server knows it by a user name of its own, so that
// the audit log tells what this process did, and nobody else.
type program struct {
	*process.Process
	user string
}

// start starts the controller with flags added, in the cluster that KUBECONFIG and changes to it
// lead to. The process ends with this one.
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

// startProgram starts a controller for t alone, which ends with t at the latest.
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

// shared is the controller of all parallel tests, nil before the first of them.
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

// errExited explains why nothing happens any more.
var errExited = errors.New("the controller under test has exited; its output is at the end")

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
