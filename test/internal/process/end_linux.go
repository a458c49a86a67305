package process

import (
	"os/exec"
	"syscall"
)

// endWithParent makes the kernel kill command when this process ends, however it ends.
func endWithParent(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
