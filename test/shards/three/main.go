// Command three runs three replicas of a program, as if they were one: it passes on its arguments,
// and stops them when it is stopped. It exits with the code of the first one that fails.
//
//	three PROGRAM [FLAG...]
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"sync"
	"syscall"

	"example.com/sample-controller/internal/cleanup"
)

func main() {
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "three:", err)
		os.Exit(1)
	}
}

func run(program string, args []string) error {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, os.Interrupt)
	var group sync.WaitGroup
	var replicas []*exec.Cmd
	failed := make(chan error, 3)
	for _, name := range []string{"a", "b", "c"} {
		replica := exec.Command(program, append([]string{"--replica-name=" + name}, args...)...)
		replica.Stdout, replica.Stderr = os.Stdout, os.Stderr
		if err := replica.Start(); err != nil {
			return err
		}
		// If this process is killed, the replica must end, too.
		kill, err := cleanup.Prepare(".", "kill", "-9", strconv.Itoa(replica.Process.Pid))
		if err != nil {
			return err
		}
		defer kill()
		replicas = append(replicas, replica)
		group.Go(func() { failed <- replica.Wait() })
	}
	go func() {
		group.Wait()
		close(failed)
	}()
	var failure error
	var once sync.Once // a second signal would end a replica at once
	for {
		select {
		case <-stop:
		case err, ok := <-failed:
			if !ok {
				return failure
			}
			failure = errors.Join(failure, err)
		}
		once.Do(func() {
			for _, replica := range replicas {
				_ = replica.Process.Signal(syscall.SIGTERM) // an error means that it is gone
			}
		})
	}
}
