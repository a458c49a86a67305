//go:build !js

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"example.com/sample-controller/lens/model"
)

// maxLine is how much of a log line is read before it counts as one without its end.
const maxLine = 1 << 16

// program runs a command, one at a time.
type program struct {
	title   string // the command, without the folders of this machine
	command []string
	env     []string
	secret  string // its log is shown without it
	logged  func(line string)
	changed func(model.Program)

	mu     sync.Mutex
	group  int           // the process group, 0 if the program does not run
	exited chan struct{} // closed when the program has ended
}

// start starts the command, unless it runs.
func (p *program) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.group != 0 {
		return errors.New("the program is running already")
	}
	group, end, err := newGroup()
	if err != nil {
		return err
	}
	log, toLog := io.Pipe()
	lastLine := make(chan string, 1)
	go func() { lastLine <- eachLine(log, p.secret, p.logged) }()
	command := exec.Command(p.command[0], p.command[1:]...)
	command.Env = append(os.Environ(), p.env...)
	command.Stdout, command.Stderr = os.Stdout, io.MultiWriter(terminal{}, toLog)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: group}
	command.WaitDelay = stopTimeout // a child of the command may write for longer than the command
	if err := command.Start(); err != nil {
		toLog.Close()
		end()
		return err
	}
	p.group, p.exited = group, make(chan struct{})
	p.changed(model.Program{Command: p.title, Running: true})
	go func() {
		_ = command.Wait() // how it ended is in ProcessState
		toLog.Close()
		last := <-lastLine
		end()
		note := fmt.Sprintf("It ended: %v.", command.ProcessState)
		if command.ProcessState.ExitCode() > 0 && last != "" {
			note += " Its last line was: " + last
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.group = 0
		p.changed(model.Program{Command: p.title, Note: note})
		close(p.exited)
	}()
	return nil
}

// terminal is the standard error of the lens. A program must not end because a disk
// is full.
type terminal struct{}

func (terminal) Write(p []byte) (int, error) {
	_, _ = os.Stderr.Write(p)
	return len(p), nil
}

// signal sends a signal to the program and to what it has started, and waits until it has ended.
func (p *program) signal(signal syscall.Signal) error {
	p.mu.Lock()
	group, exited := p.group, p.exited
	if group != 0 {
		_ = syscall.Kill(-group, signal) // an error means that it is ending
	}
	p.mu.Unlock()
	if group == 0 {
		return errors.New("the program is not running")
	}
	return awaitExit(exited)
}

// stop ends the program if it runs.
func (p *program) stop() {
	if p.signal(syscall.SIGTERM) != nil {
		_ = p.signal(syscall.SIGKILL) // an error means that it was not running
	}
}

// newGroup makes a process group. All that is in it is killed by end, or when this process ends,
// even if that is killed. A process of the group waits for that, and keeps the group's number.
func newGroup() (group int, end func(), err error) {
	// cat ends when the pipe is closed. The signals are for the program.
	guard := exec.Command("sh", "-c", `trap "" HUP INT TERM; cat; kill -KILL 0`)
	guard.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	pipe, err := guard.StdinPipe()
	if err != nil {
		return 0, nil, err
	}
	if err := guard.Start(); err != nil {
		return 0, nil, err
	}
	return guard.Process.Pid, func() {
		_ = syscall.Kill(-guard.Process.Pid, syscall.SIGKILL)
		pipe.Close()
		_ = guard.Wait()
	}, nil
}

// eachLine calls each with every line of a log, without the secret, and returns the last one.
func eachLine(log io.Reader, secret string, each func(line string)) (last string) {
	lines := bufio.NewReaderSize(log, maxLine)
	for {
		line, _, err := lines.ReadLine()
		if err != nil {
			return last
		}
		last = strings.ReplaceAll(strings.ToValidUTF8(string(line), "?"), secret, "")
		each(last)
	}
}

// shell runs a command in the root of the repository.
func (s *session) shell(ctx context.Context, line string) (output string, err error) {
	command := exec.CommandContext(ctx, "sh", "-c", line)
	command.Dir = s.root
	command.WaitDelay = time.Second // what the shell has started may run for longer than ctx
	text, err := command.CombinedOutput()
	return string(text), err
}

// noteNamespace makes cleanUp remove a namespace, or none if it is "".
func (s *session) noteNamespace(name string) error {
	return os.WriteFile(filepath.Join(s.folder, namespaceNote), []byte(name), 0o600)
}
