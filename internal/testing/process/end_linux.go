package process

import (
	"os/exec"
	"syscall"
)

// endWithParent makes the kernel kill command when this process ends, even if that is killed.
func endWithParent(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
