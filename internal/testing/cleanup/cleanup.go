// Package cleanup ends what tests start outside their own process.
package cleanup

import (
	"os/exec"
	"syscall"
)

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
