package tutorial

import (
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// patience is how long a command may take; the first `go run` of a program builds it.
	patience = 3 * time.Minute
	// quiet is how long a program that goes on must be silent to have said what it has to say.
	quiet = 4 * time.Second
	// done is what the shell prints after a command; no program prints it.
	done = "\x1e"
)

// terminal is a shell in which the commands of a page are typed.
type terminal struct {
	shell *exec.Cmd
	stdin io.Writer
	busy  bool // the last command has not ended

	mu     sync.Mutex
	output bytes.Buffer // what has not been taken yet
}

// Write takes output of the shell.
func (t *terminal) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.output.Write(b)
}

// newTerminal starts a shell in a folder.
func newTerminal(folder string, env []string) (*terminal, error) {
	t := &terminal{shell: exec.Command("bash", "--norc")}
	t.shell.Dir, t.shell.Env = folder, env
	t.shell.Stdout, t.shell.Stderr = t, t
	t.shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var err error
	if t.stdin, err = t.shell.StdinPipe(); err != nil {
		return nil, err
	}
	if err := t.shell.Start(); err != nil {
		return nil, err
	}
	// Ctrl-C is for the program in the foreground, not for the shell.
	_, err = io.WriteString(t.stdin, "trap : INT\n")
	return t, err
}

// close ends the shell and what runs in it.
func (t *terminal) close() {
	_ = syscall.Kill(-t.shell.Process.Pid, syscall.SIGKILL)
	_ = t.shell.Wait()
}

// enter types a command, for which the one before must end; ^C interrupts that.
func (t *terminal) enter(command string) error {
	if command == "^C" {
		return syscall.Kill(-t.shell.Process.Pid, syscall.SIGINT)
	}
	if t.busy {
		if output, err := t.wait(false, nil); err != nil || output != "" {
			return fmt.Errorf("the command before it printed more: %s (%v)", output, err)
		}
	}
	t.busy = true
	_, err := fmt.Fprintf(t.stdin, "{ %s\n} </dev/null; printf %q\n", command, done)
	return err
}

// peek returns the output that has not been taken, and whether its command has ended.
func (t *terminal) peek() (output string, ended bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.CutSuffix(t.output.String(), done)
}

// wait waits until the output is the wanted one or the command has ended, and takes it. Of a
// program that goes on, it takes what there is when it has fallen silent.
func (t *terminal) wait(goesOn bool, wanted func(output string) bool) (output string, err error) {
	begin := time.Now()
	since := begin // it said something new
	for {
		now, ended := t.peek()
		if now != output {
			output, since = now, time.Now()
		}
		silent := goesOn && output != "" && time.Since(since) > quiet
		if ended || silent || goesOn && wanted(output) {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.output.Next(len(output))
			if ended {
				t.output.Next(len(done))
				t.busy = false
			}
			return output, nil
		}
		if time.Since(begin) > patience {
			return output, fmt.Errorf("no end after %v", patience)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
