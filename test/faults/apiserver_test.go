package faults

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// restartAPIServer kills the API server of the cluster, and starts it again after a pause. It
// returns when Foos are served again.
func restartAPIServer(pause time.Duration) error {
	pidFile := filepath.Join(clusterDir(), "pids", "kube-apiserver.pid")
	text, err := os.ReadFile(pidFile)
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return err
	}
	args, err := arguments(pid)
	if err != nil {
		return err
	}
	program := filepath.Join(clusterDir(), "bin", "kube-apiserver")
	if args[0] != program { // never kill anything else
		return fmt.Errorf("process %d is %s, not %s", pid, args[0], program)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return err
	}
	total.count("API server killed")
	time.Sleep(pause) // this is how long it is away
	if pid, err = startAPIServer(args); err != nil {
		return err
	}
	if err := os.WriteFile(pidFile, []byte(strconv.Itoa(pid)), 0o644); err != nil {
		return err
	}
	return waitUntil(func() error {
		foos := fooClient.SamplecontrollerV1alpha1().Foos(metav1.NamespaceAll)
		_, err := foos.List(context.Background(), metav1.ListOptions{Limit: 1})
		return err
	})
}

// arguments returns the command line of a process.
func arguments(pid int) ([]string, error) {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err == nil {
		return strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00"), nil
	}
	// Where there is no /proc. No argument has a space: hack/cluster sees to it.
	line, err = exec.Command("ps", "-ww", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	return strings.Fields(string(line)), err
}

// startAPIServer starts an API server and returns the number of the process.
func startAPIServer(args []string) (pid int, err error) {
	log, err := os.OpenFile(filepath.Join(clusterDir(), "logs", "kube-apiserver.log"),
		os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return 0, err
	}
	defer log.Close()
	command := exec.Command(args[0], args[1:]...)
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // hack/cluster ends it, not Ctrl-C
	if err := command.Start(); err != nil {
		return 0, err
	}
	go func() { _ = command.Wait() }() // it ends with a signal
	return command.Process.Pid, nil
}
