// Package cleanup ends what tests start outside of their own process.
package cleanup

import (
	"os/exec"
	"syscall"
)

// Prepare starts a process that waits, and runs a command in folder when end is called or when this
// process ends, however it ends: after Ctrl-C or a timeout, no deferred function would run. end
// returns when the command has ended. Whether it succeeded, nobody is left to ask.
func Prepare(folder, name string, args ...string) (end func(), err error) {
	// cat ends with the pipe, which this process holds open.
	command := exec.Command("sh", append([]string{"-c", `cat; exec "$0" "$@"`, name}, args...)...)
	command.Dir = folder
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C is not for it
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
