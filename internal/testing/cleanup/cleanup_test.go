package cleanup

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"example.com/sample-controller/internal/testing/must"
)

// dies is the environment variable that makes the test binary kill itself. It names a folder.
const dies = "CLEANUP_TEST_DIES"

func TestMain(m *testing.M) {
	if folder := os.Getenv(dies); folder != "" {
		if _, err := Prepare(folder, "touch", "cleaned up"); err != nil {
			panic(err)
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // until the signal arrives
	}
	os.Exit(m.Run())
}

func TestCommandRunsWhenEndIsCalled(t *testing.T) {
	folder := t.TempDir()
	end := must.Get(Prepare(folder, "touch", "cleaned up"))(t)
	if _, err := os.Stat(filepath.Join(folder, "cleaned up")); err == nil {
		t.Error("the command ran before end was called")
	}
	end()
	if _, err := os.Stat(filepath.Join(folder, "cleaned up")); err != nil {
		t.Errorf("the command did not run: %v", err)
	}
}

func TestCommandRunsWhenTheProcessIsKilled(t *testing.T) {
	folder := t.TempDir()
	self := exec.Command(os.Args[0])
	self.Env = append(os.Environ(), dies+"="+folder)
	if err := self.Run(); err == nil {
		t.Fatal("the process was not killed")
	}
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(folder, "cleaned up")); err == nil {
			return
		} else if time.Since(begin) > time.Minute {
			t.Fatalf("the command did not run within a minute: %v", err)
		}
	}
}
