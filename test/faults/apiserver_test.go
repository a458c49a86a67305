package faults

import (
	"context"
	"fmt"
	"net"
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
	pid, args, err := controlPlane.Process("kube-apiserver")
	if err != nil {
		return err
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return err
	}
	total.count("API server killed")
	if err := waitUntil(portIsFree); err != nil {
		return err
	}
	time.Sleep(pause) // the API server is away for this long
	if pid, err = startAPIServer(args, apiServerLog()); err != nil {
		return err
	}
	err = os.WriteFile(
		controlPlane.PIDFile("kube-apiserver"), []byte(strconv.Itoa(pid)), 0o644)
	if err != nil {
		return err
	}
	err = waitUntil(func() error {
		foos := fooClient.SamplecontrollerV1alpha1().Foos(metav1.NamespaceAll)
		_, err := foos.List(context.Background(), metav1.ListOptions{Limit: 1})
		return err
	})
	if err != nil {
		log, _ := os.ReadFile(apiServerLog()) // without it, there is less to read
		return fmt.Errorf("%w; the API server's log ends with: %s", err, log[max(0, len(log)-2000):])
	}
	return controlPlane.Check()
}

// portIsFree returns an error until the kernel has closed the sockets of a killed API server. On a
// busy machine, it does so some time after the process has ended.
func portIsFree() error {
	config, err := controlPlane.Config()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", strings.TrimPrefix(config.Host, "https://"))
	if err != nil {
		return err
	}
	return listener.Close()
}

func apiServerLog() string { return filepath.Join(controlPlane.Dir, "logs", "kube-apiserver.log") }

// startAPIServer starts an API server that logs to that file, and returns its process ID.
func startAPIServer(args []string, logPath string) (pid int, err error) {
	log, err := os.OpenFile(logPath, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return 0, err
	}
	defer log.Close()
	command := exec.Command(args[0], args[1:]...)
	command.Dir = controlPlane.Dir // where etcd has its socket
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // hack/cluster ends it, not Ctrl-C
	if err := command.Start(); err != nil {
		return 0, err
	}
	go func() { _ = command.Wait() }() // a signal ends it, which Wait reports as an error
	return command.Process.Pid, nil
}
