//go:build !js

// Command lens shows in a browser what a running controller does: its watches, caches, queue and
// workers, and its requests. It looks from the outside, at what goes over the wire and at the log.
//
// Read it in this order: main.go; session.go, what the lens starts; lens.go, what is seen and who
// sees it; server.go, what the page asks for; actions.go, what its buttons do.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"k8s.io/klog/v2"
)

// startTimeout limits how long the page waits for the program.
const startTimeout = 15 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	klog.LogToStderr(false)      // what client-go logs about lost connections is in the picture
	klog.SetOutput(io.Discard)
	err := run(ctx, os.Args[1:])
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "lens: %v\n", err)
		os.Exit(1)
	}
}

// run watches a program until ctx is done or, if there is a scenario, until that is over.
func run(ctx context.Context, args []string) error {
	o, err := parseFlags(args)
	if err != nil {
		return err
	}
	c, err := findCluster()
	if err != nil {
		return err
	}
	fmt.Printf("The program and the buttons of the page work on the cluster at %s.\n"+
		"If another controller of Foos runs there, stop it: two would disturb each other.\n", c.config.Host)
	if !c.loopback() && !o.anyCluster {
		return errors.New("that cluster is not on this machine; -any-cluster is needed to change it")
	}
	folder, undo, err := c.makeFolder(o.root)
	if err != nil {
		return err
	}
	defer undo()
	p, err := build(ctx, o, folder)
	if err != nil {
		return err
	}
	s, err := newSession(o, c, folder, p)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	end, err := s.start(ctx)
	if err != nil {
		return err
	}
	defer end()
	if o.scenario != nil {
		return s.record(ctx, o.scenario, o.record)
	}
	return s.show(ctx)
}

// parseFlags returns the options in args.
func parseFlags(args []string) (o *options, err error) {
	o = &options{}
	fs := flag.NewFlagSet("lens", flag.ContinueOnError)
	fs.StringVar(&o.program, "program", "", "`Folder` of the program (default: this controller). It is "+
		"built, and run with -v=5, unless there is a COMMAND. The page shows its source.")
	fs.IntVar(&o.burst, "burst", 50, "How many Foos the button for many creates.")
	fs.BoolVar(&o.anyCluster, "any-cluster", false, "Work on a cluster that is not on this machine.")
	scenario := fs.String("scenario", "", "`Name` of a scenario to play, without a browser.")
	fs.StringVar(&o.record, "record", "", "`File` to record the scenario to.")
	fs.Usage = func() {
		fmt.Fprint(fs.Output(), "usage: go -C lens run . [flags] [-- COMMAND...]\n\nFlags:\n")
		fs.PrintDefaults()
	}
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if o.command = fs.Args(); *scenario != "" {
		if o.scenario, err = findScenario(*scenario); err != nil {
			return nil, err
		}
	}
	if folder := filepath.Dir(o.record); o.record != "" && (o.scenario == nil || !exists(folder)) {
		return nil, fmt.Errorf("-record needs -scenario, and a folder that is there: %s", folder)
	}
	_, here, _, _ := runtime.Caller(0)
	o.root = filepath.Dir(filepath.Dir(here))
	if o.program == "" && len(o.command) > 0 {
		return o, nil // nobody knows where its source is
	}
	o.program = filepath.ToSlash(filepath.Clean(o.program))
	if !filepath.IsLocal(o.program) {
		return nil, fmt.Errorf("%s is not a folder of this repository", o.program)
	}
	return o, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// build returns the program that is to be run. If there is no command, it builds one.
func build(ctx context.Context, o *options, folder string) (*program, error) {
	if len(o.command) > 0 {
		words := append([]string{filepath.Base(o.command[0])}, o.command[1:]...)
		return &program{command: o.command, title: strings.Join(words, " ")}, nil
	}
	name, args := path.Base(o.program), []string{"-v=5"}
	if o.program == "." {
		name = "controller"
		// Another program may have these ports.
		args = append(args, "-metrics-bind-address=0", "-health-probe-bind-address=0")
	}
	binary := filepath.Join(folder, name)
	compile := exec.CommandContext(ctx,
		filepath.Join(o.root, "hack/compile"), "the program", binary, "--", ".")
	compile.Dir = filepath.Join(o.root, o.program) // it may be in another module
	compile.Stdout, compile.Stderr = os.Stderr, os.Stderr
	// hack/compile removes its files when go has ended.
	compile.SysProcAttr, compile.WaitDelay = &syscall.SysProcAttr{Setpgid: true}, stopTimeout
	compile.Cancel = func() error { return syscall.Kill(-compile.Process.Pid, syscall.SIGTERM) }
	if err := compile.Run(); err != nil {
		return nil, fmt.Errorf("building the program in %s: %w", o.program, err)
	}
	title := name + " " + strings.Join(args, " ")
	return &program{command: append([]string{binary}, args...), title: title}, nil
}

// show serves the page until ctx is done. What the program logs as it starts stands before the
// address.
func (s *session) show(ctx context.Context) error {
	address, end, err := s.serve(s.routes())
	if err != nil {
		return err
	}
	defer end()
	starting, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	_ = s.lens.waitQuiet(starting) // a program that never is quiet is shown, too
	if err := s.setGate("slow"); err != nil {
		return err
	}
	fmt.Printf("\nThe lens is at %s/\n\n", address)
	<-ctx.Done()
	fmt.Println("The lens ends the program, and removes the namespace that it has made. Wait some seconds.")
	return nil
}

// record plays a scenario, and writes what was seen to a file, if there is one.
func (s *session) record(ctx context.Context, script *scenario, file string) error {
	if err := s.play(ctx, script); err != nil || file == "" {
		return err
	}
	return s.recording(script.Title, script.About).Write(file)
}
