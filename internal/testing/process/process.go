// Package process starts programs for tests, such as a controller, and ends them. It reports what they
// print and serve, and how they end.
package process

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// stopTimeout is how long a controller may take to end after SIGTERM: as long as a kubelet waits by
// default.
const stopTimeout = 30 * time.Second

// Process is a running controller.
type Process struct {
	// Exited is closed when the process is gone.
	Exited <-chan struct{}

	command *exec.Cmd
	log     string
}

// Start starts command with that kubeconfig, and writes its output to a file beside that. On Linux,
// the process ends with this one.
func Start(command *exec.Cmd, kubeconfig string) (*Process, error) {
	log, err := os.CreateTemp(filepath.Dir(kubeconfig), "controller")
	if err != nil {
		return nil, err
	}
	defer log.Close()
	command.Env = append(command.Environ(), "KUBECONFIG="+kubeconfig)
	command.Stdout, command.Stderr = log, log
	endWithParent(command)
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("starting the controller: %w", err)
	}
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_ = command.Wait() // the outcome is in command.ProcessState
	}()
	return &Process{Exited: exited, command: command, log: log.Name()}, nil
}

// Stop asks the process to end, and returns an error unless it does so in time and with 0.
func (p *Process) Stop() error {
	p.Signal(syscall.SIGTERM)
	select {
	case <-p.Exited:
	case <-time.After(stopTimeout):
		p.Kill()
		return fmt.Errorf("the controller was still running %v after SIGTERM", stopTimeout)
	}
	if code := p.ExitCode(); code != 0 {
		return fmt.Errorf("the controller exited with %d after SIGTERM, not with 0", code)
	}
	return nil
}

// Signal sends a signal, and does not wait for its effect.
func (p *Process) Signal(signal os.Signal) {
	_ = p.command.Process.Signal(signal) // an error means that the process is gone
}

// Kill ends the process without a warning, and waits until it is gone.
func (p *Process) Kill() {
	p.Signal(syscall.SIGKILL)
	<-p.Exited
}

// ExitCode returns the exit code, or -1 if a signal ended the process. It must have exited.
func (p *Process) ExitCode() int {
	return p.command.ProcessState.ExitCode()
}

// Output returns what the process printed so far.
func (p *Process) Output() string {
	text, _ := os.ReadFile(p.log) // without the file, there is less to read
	return strings.TrimSpace(string(text))
}

// LastLine returns the last line that the process printed.
func (p *Process) LastLine() string {
	text := p.Output()
	return text[strings.LastIndex(text, "\n")+1:]
}

// WriteKubeconfig writes a copy of config into dir, and returns its path. A program that uses it acts as
// user, so the audit log shows what it did. The user is in system:masters: it may do everything,
// and API Priority and Fairness exempts it. change, unless it is nil, changes the copy further.
func WriteKubeconfig(
	dir string, config *clientcmdapi.Config, user string, change func(*clientcmdapi.Config),
) (path string, err error) {
	config = config.DeepCopy()
	for _, info := range config.AuthInfos {
		info.Impersonate, info.ImpersonateGroups = user, []string{"system:masters"}
	}
	if change != nil {
		change(config)
	}
	path = filepath.Join(dir, user+".yaml")
	if err := clientcmd.WriteToFile(*config, path+".new"); err != nil {
		return "", err
	}
	return path, os.Rename(path+".new", path) // a program that runs may read it at any time
}

// Prepare starts a process that waits until end is called or this process ends, and then runs a
// command in folder. So the command runs even after Ctrl-C or a timeout, when no deferred function
// runs. end returns when the command has ended, and ignores whether it succeeded.
func Prepare(folder, name string, args ...string) (end func(), err error) {
	// cat ends when the pipe is closed, at the latest when this process ends.
	command := exec.Command("sh", append([]string{"-c", `cat; exec "$0" "$@"`, name}, args...)...)
	command.Dir = folder
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C must not end it
	pipe, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	return func() {
		pipe.Close()
		_ = command.Wait()
	}, nil
}

// FreeAddress returns an address on this machine on which no program listens. It avoids the ports that the
// kernel hands out to programs that ask for any port: another program could get such a port before
// the program under test does.
func FreeAddress() (string, error) {
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 10000+rand.IntN(10000))
		if listener, err := net.Listen("tcp", address); err == nil {
			return address, listener.Close()
		}
	}
	return "", errors.New("found no free port between 10000 and 20000")
}
