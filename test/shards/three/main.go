// Command three runs three replicas of a program, as if they were one: it passes on its arguments,
// and stops them when it is stopped, or when one of them ends with an error.
//
//	three PROGRAM [FLAG...]
package main

import (
	"context"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"sync"
	"syscall"

	"example.com/sample-controller/internal/testing/cleanup"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	var group sync.WaitGroup
	failed := make(chan error, 3)
	for _, name := range []string{"a", "b", "c"} {
		group.Go(func() {
			if err := run(ctx, append(slices.Clone(os.Args[1:]), "--replica-name="+name)); err != nil {
				failed <- err
				stop()
			}
		})
	}
	group.Wait()
	if len(failed) > 0 {
		log.Fatalln("three:", <-failed)
	}
}

// run runs a command until it ends. When ctx is done, it asks the command to end.
func run(ctx context.Context, args []string) error {
	command := exec.CommandContext(ctx, args[0], args[1:]...)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	command.Cancel = func() error {
		_ = command.Process.Signal(syscall.SIGTERM)
		return os.ErrProcessDone // an end after that is no error
	}
	if err := command.Start(); err != nil {
		return err
	}
	// If this process is killed, the replica must end, too.
	kill, err := cleanup.Prepare(".", "kill", "-9", strconv.Itoa(command.Process.Pid))
	if err != nil {
		return err
	}
	defer kill()
	return command.Wait()
}
