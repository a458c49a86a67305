package faults

import (
	"fmt"
	"os/exec"
	"sync"
	"syscall"
	"time"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/process"
)

// start starts a controller that acts as user, through the proxy, and keeps its Lease in the
// namespace.
func (h *history) start(user string, flags ...string) (*process.Process, error) {
	config := clientcmdapi.NewConfig()
	config.CurrentContext = "proxy"
	config.Contexts["proxy"] = &clientcmdapi.Context{
		Cluster: "proxy", AuthInfo: "proxy", Namespace: h.namespace,
	}
	config.Clusters["proxy"] = &clientcmdapi.Cluster{Server: h.proxy.url}
	config.AuthInfos["proxy"] = clientcmdapi.NewAuthInfo()
	path, err := process.WriteKubeconfig(controlPlane.Dir, config, user, nil)
	if err != nil {
		return nil, err
	}
	command := exec.Command(*controllerPath, append([]string{"--namespace", h.namespace,
		"--metrics-bind-address=0", "--health-probe-bind-address=0"}, flags...)...)
	return process.Start(command, path)
}

// startOnce starts a controller that acts as user until the test ends.
func (h *history) startOnce(user string, flags ...string) *process.Process {
	h.t.Helper()
	p := must.Get(h.start(user, flags...))(h.t)
	h.t.Cleanup(func() {
		p.Kill()
		if h.t.Failed() {
			h.t.Logf("output of %s:\n%s", user, p.Output())
		}
	})
	return p
}

// supervisor restarts a controller that ends, as a kubelet does.
type supervisor struct {
	start func() (*process.Process, error)
	done  chan struct{} // closed when it has stopped

	mu      sync.Mutex
	current *process.Process
	killed  bool     // current was, by kill
	asked   bool     // current was asked to end, by replace
	stopped bool     // nothing is to be started any more
	ended   []string // what programs said that ended by themselves
}

// supervise starts a controller and, until the test ends, restarts it whenever it ends.
func (h *history) supervise(flags ...string) *supervisor {
	h.t.Helper()
	s := &supervisor{done: make(chan struct{})}
	s.start = func() (*process.Process, error) { return h.start(h.user, flags...) }
	must.Do(h.t, s.next())
	go func() {
		defer close(s.done)
		for s.waitAndRecord() {
			time.Sleep(100 * time.Millisecond) // the backoff of a very quick kubelet
			if err := s.next(); err != nil {
				h.t.Error(err)
				return
			}
		}
	}()
	h.t.Cleanup(func() {
		s.stop()
		if h.t.Failed() {
			h.t.Logf("output of the controller:\n%s", s.current.Output())
		}
	})
	return s
}

func (s *supervisor) next() (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopped {
		s.current, err = s.start()
		s.killed, s.asked = false, false
	}
	return err
}

// waitAndRecord waits until the current program ends, and reports whether to start another.
func (s *supervisor) waitAndRecord() bool {
	<-s.current.Exited
	s.mu.Lock()
	defer s.mu.Unlock()
	finished := s.asked && s.current.ExitCode() <= 0 // 0 or, when it has hardly begun, a signal
	if !s.stopped && !s.killed && !finished {
		s.ended = append(s.ended, s.current.LastLine())
	}
	return !s.stopped
}

// kill ends the current program without a warning.
func (s *supervisor) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.killed = true
	s.current.Signal(syscall.SIGKILL)
}

// replace asks the current program to end, as a rolling update does, and waits until it has.
// Another takes its place.
func (s *supervisor) replace() error {
	s.mu.Lock()
	current := s.current
	s.asked = true
	current.Signal(syscall.SIGTERM)
	s.mu.Unlock()
	select {
	case <-current.Exited:
		return nil
	case <-time.After(*patience):
		return fmt.Errorf("the controller still runs %v after SIGTERM; its output ends with: %s",
			*patience, current.LastLine())
	}
}

func (s *supervisor) stop() {
	s.mu.Lock()
	s.stopped = true
	s.current.Signal(syscall.SIGKILL)
	s.mu.Unlock()
	<-s.done
}
