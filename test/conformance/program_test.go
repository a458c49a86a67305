package conformance

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// stopTimeout is how long a program may take to end after SIGTERM.
const stopTimeout = 15 * time.Second

// program is a running controller. The API server knows it by a user name of its own, so that
// the audit log tells what this process did, and nobody else.
type program struct {
	user    string
	command *exec.Cmd
	output  *buffer
	exited  chan struct{} // closed when the process is gone
}

// buffer collects what a process prints while others read it.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// start starts the controller with flags added, in the cluster that KUBECONFIG and changes to it
// lead to. The process ends with this one.
func start(flags string, change func(*clientcmdapi.Config)) (*program, error) {
	p := &program{
		user: "conformance-" + utilrand.String(8), output: &buffer{}, exited: make(chan struct{}),
	}
	kubeconfig, err := p.writeKubeconfig(change)
	if err != nil {
		return nil, fmt.Errorf("writing a kubeconfig: %w", err)
	}
	p.command = exec.Command("sh", "-c", "exec "+*controllerCommand+" "+flags)
	p.command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	p.command.Stdout, p.command.Stderr = p.output, p.output
	endWithParent(p.command)
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("starting the controller: %w", err)
	}
	go func() {
		defer close(p.exited)
		_ = p.command.Wait() // the outcome is in command.ProcessState
	}()
	return p, nil
}

// writeKubeconfig writes a copy of the tests' kubeconfig that makes its reader act as p.user, who
// may do everything.
func (p *program) writeKubeconfig(change func(*clientcmdapi.Config)) (path string, err error) {
	config, err := clientcmd.NewDefaultClientConfigLoadingRules().Load()
	if err != nil {
		return "", err
	}
	for _, user := range config.AuthInfos {
		user.Impersonate, user.ImpersonateGroups = p.user, []string{"system:masters"}
	}
	if change != nil {
		change(config)
	}
	path = filepath.Join(tempDir, p.user+".yaml")
	return path, clientcmd.WriteToFile(*config, path)
}

// stop sends SIGTERM, waits for the end, and returns an error unless the program exits with 0.
func (p *program) stop() error {
	p.signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(stopTimeout):
		p.signal(syscall.SIGKILL)
		<-p.exited
		return fmt.Errorf("the controller was still running %v after SIGTERM", stopTimeout)
	}
	if code := p.command.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("the controller exited with %d after SIGTERM, not with 0", code)
	}
	return nil
}

func (p *program) signal(signal os.Signal) {
	_ = p.command.Process.Signal(signal) // an error says that it is gone already
}

// lastLine returns the last line that the program printed.
func (p *program) lastLine() string {
	lines := strings.Split(strings.TrimSpace(p.output.String()), "\n")
	return lines[len(lines)-1]
}

// startProgram starts a controller for t alone, which ends with t at the latest.
func startProgram(t *testing.T, flags string, change func(*clientcmdapi.Config)) *program {
	t.Helper()
	p, err := start(flags, change)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.signal(syscall.SIGKILL)
		<-p.exited
		if t.Failed() {
			t.Logf("output of the controller:\n%s", p.output)
		}
	})
	return p
}

// stopProgram stops p, and fails t unless p exits with 0.
func stopProgram(t *testing.T, p *program) {
	t.Helper()
	if err := p.stop(); err != nil {
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
	case <-shared.exited:
		return errExited
	default:
		return nil
	}
}
