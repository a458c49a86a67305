package check

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"example.com/sample-controller/internal/testing/process"
	"example.com/sample-controller/internal/testing/setting"
)

var patience = flag.Duration("patience", 3*setting.Patience(), "how long -console waits for the output "+
	"that a page shows; a slow machine may need more")

const (
	// settle is how long a program must be silent before its wrong output is reported. It does not
	// matter for output that is right, or may become right.
	settle = 2 * time.Second
	// done is what the shell prints after a command; no program prints it.
	done = "\x1e"
)

// errPatience means that a command printed too little, but nothing wrong.
var errPatience = errors.New("gave up")

// terminal is a shell in which the commands of a page are typed.
type terminal struct {
	shell *exec.Cmd
	stdin io.Writer
	kill  func() // the shell, and what runs in it
	busy  bool   // the last command has not ended
	// loose means that the page does not say what comes next: its last line was "...".
	loose bool

	mu     sync.Mutex
	output bytes.Buffer // what has not been taken yet
}

// Write takes output of the shell.
func (t *terminal) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.output.Write(b)
}

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
	group := fmt.Sprint(-t.shell.Process.Pid)
	if t.kill, err = process.Prepare(folder, "kill", "-9", "--", group); err != nil {
		return nil, err
	}
	// Ctrl-C is for the program in the foreground, not for the shell.
	_, err = io.WriteString(t.stdin, "trap : INT\n")
	return t, err
}

func (t *terminal) close() {
	t.kill()
	_ = t.shell.Wait()
}

// enter types a command, after the one before has ended. ^C interrupts the one before.
func (t *terminal) enter(command string) error {
	if command == "^C" {
		return syscall.Kill(-t.shell.Process.Pid, syscall.SIGINT)
	}
	if t.busy {
		output, err := t.wait(false, nil)
		if err != nil {
			return fmt.Errorf("the command before this one has not ended: %w", err)
		}
		if more := promised(nil, output); len(more) > 0 && !t.loose {
			return fmt.Errorf("the command before this one printed more than the page shows:\n%s",
				strings.Join(more, "\n"))
		}
	}
	t.busy, t.loose = true, false
	_, err := fmt.Fprintf(t.stdin, "{ %s\n} </dev/null; printf %q\n", command, done)
	return err
}

// peek returns the lines that have not been taken, without an incomplete last one, and whether the
// command has ended.
func (t *terminal) peek() (lines []string, ended bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	output, ended := strings.CutSuffix(t.output.String(), done)
	if !ended {
		output = output[:strings.LastIndexByte(output, '\n')+1]
	}
	return outputLines(output), ended
}

// take removes that many lines from the output or, when the command has ended, all of it.
func (t *terminal) take(lines int, ended bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if ended {
		t.output.Reset()
		t.busy = false
		return
	}
	for range lines {
		_, _ = t.output.ReadBytes('\n')
	}
}

// wait waits until the command has ended, and takes its output. If a program goes on, wait takes
// the output that the page shows as soon as it is there, and leaves the rest to the next step.
func (t *terminal) wait(goesOn bool, shown []string) ([]string, error) {
	begin := time.Now()
	since, before := begin, -1 // when the number of lines last changed, and the number
	n, says := 0, open
	for {
		lines, ended := t.peek()
		if ended {
			t.take(0, true)
			return lines, nil
		}
		if len(lines) != before {
			since, before = time.Now(), len(lines)
			if goesOn {
				n, says = judge(shown, lines)
			}
		}
		if says == right || says == wrong && time.Since(since) > settle {
			t.take(n, false)
			return lines[:n], nil
		}
		if time.Since(begin) > *patience {
			t.take(len(lines), false)
			return lines, errPatience
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// step is a command in a console and its output. Later output of a program that goes on is a step
// without a command.
type step struct {
	command string // a line that begins with "$ " and those that begin with "> ", or ^C
	output  []string
	line    int // of the console, counted from 0
}

// steps takes a console block apart.
func steps(body []string) (all []step) {
	for i, line := range body {
		command, isCommand := strings.CutPrefix(line, "$ ")
		more, isMore := strings.CutPrefix(line, "> ")
		switch {
		case isCommand:
			all = append(all, step{command: command, line: i})
		case line == "^C":
			all = append(all, step{command: line, line: i})
		case isMore && len(all) > 0 && len(all[len(all)-1].output) == 0:
			all[len(all)-1].command += "\n" + more
		case len(all) == 0:
			all = append(all, step{output: []string{line}})
		default:
			all[len(all)-1].output = append(all[len(all)-1].output, line)
		}
	}
	return all
}

// body puts a console block together again.
func body(all []step) (lines []string) {
	for _, s := range all {
		switch s.command {
		case "":
		case "^C":
			lines = append(lines, s.command)
		default:
			lines = append(lines, "$ "+strings.ReplaceAll(s.command, "\n", "\n> "))
		}
		lines = append(lines, s.output...)
	}
	return lines
}
