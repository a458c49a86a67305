package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"example.com/sample-controller/lens/model"

	"example.com/sample-controller/internal/testing/must"
)

// diesWith is the environment variable that makes the test binary start a program and kill itself.
// It names a file.
const diesWith = "LENS_TEST_DIES_WITH"

// family is a command with a child. Each writes its process ID as a line into the file $FILE.
const family = `sh -c 'echo $$ >>"$FILE"; sleep 1000' & echo $$ >>"$FILE"; echo started >&2; wait`

func TestMain(m *testing.M) {
	if file := os.Getenv(diesWith); file != "" {
		started := make(chan bool)
		p := newProgram(file, family, func(string) { close(started) }, func(model.Program) {})
		if err := p.start(); err != nil {
			panic(err)
		}
		<-started
		waitForPIDs(file)
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // until the signal arrives
	}
	os.Exit(m.Run())
}

func newProgram(file, script string, logged func(string), changed func(model.Program)) *program {
	return &program{
		title: "a test", command: []string{"sh", "-c", script}, env: []string{"FILE=" + file},
		logged: logged, changed: changed,
	}
}

// waitForPIDs returns the process IDs in the file when both are there.
func waitForPIDs(file string) (pids []int) {
	for begin := time.Now(); time.Since(begin) < time.Minute; time.Sleep(10 * time.Millisecond) {
		text, _ := os.ReadFile(file)
		if lines := strings.Fields(string(text)); len(lines) >= 2 && text[len(text)-1] == '\n' {
			for _, line := range lines {
				pid, _ := strconv.Atoi(line)
				pids = append(pids, pid)
			}
			return pids
		}
	}
	panic("the program has not started")
}

// checkGone fails the test unless the processes go.
func checkGone(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		for begin := time.Now(); isRunning(pid); time.Sleep(10 * time.Millisecond) {
			if time.Since(begin) > time.Minute {
				t.Fatalf("process %d is still there", pid)
			}
		}
	}
}

// isRunning reports whether there is such a process, other than one that waits to be forgotten.
func isRunning(pid int) bool {
	state, err := exec.Command("ps", "-o", "stat=", "-p", fmt.Sprint(pid)).Output()
	return err == nil && !strings.HasPrefix(strings.TrimSpace(string(state)), "Z")
}

// watchedProgram returns a program and what it tells.
func watchedProgram(t *testing.T, file, script string) (*program, chan string, chan model.Program) {
	lines, changes := make(chan string, 100), make(chan model.Program, 100)
	p := newProgram(file, script, func(line string) { lines <- line },
		func(change model.Program) { changes <- change })
	t.Cleanup(p.stop)
	return p, lines, changes
}

// receive returns the next value of a channel.
func receive[T any](t *testing.T, from <-chan T) (value T) {
	t.Helper()
	select {
	case value = <-from:
	case <-time.After(time.Minute):
		t.Fatal("nothing comes")
	}
	return value
}

func TestProgramEndsAndIsStartedAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pids")
	p, lines, changes := watchedProgram(t, file, family)
	for note, signal := range map[string]syscall.Signal{
		"killed": syscall.SIGKILL, "terminated": syscall.SIGTERM,
	} {
		must.Do(t, p.start())
		if line := receive(t, lines); line != "started" {
			t.Errorf("logged %q, want started", line)
		}
		if change := receive(t, changes); !change.Running {
			t.Errorf("got %+v, want that it runs", change)
		}
		if err := p.start(); err == nil {
			t.Error("a second one was started beside it")
		}
		pids := waitForPIDs(file)
		must.Do(t, p.signal(signal))
		if change := receive(t, changes); change.Running || !strings.Contains(change.Note, note) {
			t.Errorf("got %+v, want that it was %s", change, note)
		}
		checkGone(t, pids)
		must.Do(t, os.Remove(file))
	}
	if err := p.signal(syscall.SIGKILL); err == nil {
		t.Error("there was nothing to kill, but no error")
	}
}

func TestProgramEndsByItself(t *testing.T) {
	p, lines, changes := watchedProgram(t, "", "echo one >&2; printf two >&2; exit 3")
	must.Do(t, p.start())
	receive(t, changes)
	change := receive(t, changes)
	if change.Running || !strings.Contains(change.Note, "exit status 3") ||
		!strings.Contains(change.Note, "two") {
		t.Errorf("got %+v, want the exit status and the last line", change)
	}
	if one, two := receive(t, lines), receive(t, lines); one != "one" || two != "two" {
		t.Errorf("logged %q and %q", one, two)
	}
}

func TestProgramThatCannotBeStarted(t *testing.T) {
	p, _, _ := watchedProgram(t, "", "")
	p.command = []string{filepath.Join(t.TempDir(), "nothing")}
	for range 2 {
		if err := p.start(); err == nil || !strings.Contains(err.Error(), "no such file") {
			t.Errorf("got error %v", err)
		}
	}
}

func TestProgramThatEndsLeavesNoProcess(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pids")
	p, _, changes := watchedProgram(t, file,
		`sleep 1000 >/dev/null 2>&1 & echo $! >>"$FILE"; echo $$ >>"$FILE"`)
	must.Do(t, p.start())
	for receive(t, changes).Running {
	}
	checkGone(t, waitForPIDs(file))
}

func TestKilledLensLeavesNoProcess(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pids")
	self := exec.Command(os.Args[0])
	self.Env = append(os.Environ(), diesWith+"="+file)
	if err := self.Run(); err == nil {
		t.Fatal("the process was not killed")
	}
	checkGone(t, waitForPIDs(file))
}

func TestLines(t *testing.T) {
	var got []string
	long := strings.Repeat("x", maxLine)
	log := strings.NewReader("one\nhttp://a/secret/b\n\nfour\xff\n" + long + "rest")
	last := eachLine(iotest.HalfReader(log), "/secret",
		func(line string) { got = append(got, line) })
	if want := []string{"one", "http://a/b", "", "four?", long, "rest"}; !slices.Equal(got, want) {
		t.Errorf("got %.200q", got)
	}
	if last != "rest" {
		t.Errorf("the last line is %.200q", last)
	}
}
