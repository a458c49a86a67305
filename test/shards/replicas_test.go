package shards

import (
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"example.com/sample-controller/internal/testing/suite/kubeconfig"
	"example.com/sample-controller/internal/testing/suite/process"
)

// leaseDuration is how long the others wait for a replica that is silent.
const leaseDuration = 8 * time.Second

var flags = strings.Fields("--shards=6 --leader-elect-lease-duration=8s " +
	"--leader-elect-renew-deadline=6s --leader-elect-retry-period=500ms " +
	"--metrics-bind-address=0 --health-probe-bind-address=0 -v=2")

// replica is a place for a process, which starts again when it ends, as in a Deployment. Each
// process acts as a user of its own, so that the audit log shows what it did.
type replica struct {
	t    *testing.T
	name string
	done chan struct{} // closed when no process follows

	mu        sync.Mutex
	processes []*process.Process
	thawed    map[string]time.Time // when a user's process went on after a freeze
	stopped   bool                 // no process is to start any more
	killed    bool                 // the current process was, or was asked to end
}

// startReplica starts a process, and others after it, until the test ends.
func startReplica(t *testing.T, name string) *replica {
	t.Helper()
	r := &replica{t: t, name: name, done: make(chan struct{}), thawed: map[string]time.Time{}}
	if err := r.start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(r.done)
		for {
			<-r.current().Exited
			time.Sleep(100 * time.Millisecond) // the backoff of a very quick kubelet
			if goesOn, err := r.next(); err != nil || !goesOn {
				if err != nil {
					t.Error(err)
				}
				return
			}
		}
	}()
	t.Cleanup(r.stop)
	return r
}

// user returns the user as which process number n acts.
func (r *replica) user(n int) string { return fmt.Sprintf("shards-%s-%d", r.name, n) }

// current returns the process that started last. Its user has the number of processes so far.
func (r *replica) current() *process.Process { return r.processes[len(r.processes)-1] }

// start starts a process.
func (r *replica) start() error {
	config, err := clientcmd.LoadFromFile(controlPlane.Kubeconfig())
	if err != nil {
		return err
	}
	path, err := kubeconfig.Write(controlPlane.Dir, config, r.user(len(r.processes)+1), nil)
	if err != nil {
		return err
	}
	command := exec.Command(*program, append(flags, "--replica-name="+r.name)...)
	started, err := process.Start(command, path)
	if err != nil {
		return err
	}
	r.processes, r.killed = append(r.processes, started), false
	return nil
}

// next starts the next process, unless stop was called. It fails the test if the last one ended by
// itself, unless it was frozen for too long.
func (r *replica) next() (goesOn bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, frozen := r.thawed[r.user(len(r.processes))]
	switch code := r.current().ExitCode(); {
	case r.stopped:
		return false, nil
	case frozen && code != 1:
		r.t.Errorf("replica %s exited with %d after a freeze, want 1", r.name, code)
	case !frozen && !r.killed:
		r.t.Errorf("replica %s ended by itself: %s", r.name, r.current().LastLine())
	}
	return true, r.start()
}

// kill ends the current process without a warning.
func (r *replica) kill() { r.signal(syscall.SIGKILL) }

// terminate asks the current process to end, and to give back its shards.
func (r *replica) terminate() { r.signal(syscall.SIGTERM) }

func (r *replica) signal(signal syscall.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.killed = true
	r.current().Signal(signal)
}

// freeze stops the current process for longer than its Lease lasts, without its knowing.
func (r *replica) freeze() {
	r.mu.Lock()
	frozen, user := r.current(), r.user(len(r.processes))
	r.mu.Unlock()
	frozen.Signal(syscall.SIGSTOP)
	time.Sleep(leaseDuration + 2*time.Second)
	r.mu.Lock()
	r.thawed[user] = time.Now()
	r.mu.Unlock()
	frozen.Signal(syscall.SIGCONT)
}

// stop ends the current process for good.
func (r *replica) stop() {
	r.mu.Lock()
	r.stopped = true
	r.mu.Unlock()
	r.signal(syscall.SIGKILL)
	<-r.done
	for i, p := range r.processes {
		if r.t.Failed() {
			r.t.Logf("output of %s:\n%s", r.user(i+1), p.Output())
		}
	}
}
