package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"example.com/sample-controller/lens/model"
	"example.com/sample-controller/lens/wire"
)

// program runs a function as if it was a process.
type program struct {
	name    string
	title   string
	secret  string // in the path of the proxy
	run     func(context.Context) error
	proxy   *wire.Proxy
	logged  func(line string)
	changed func(model.Program)

	mu      sync.Mutex
	process *process // nil if the program does not run
}

// process is one run of the program.
type process struct {
	program *program
	stop    context.CancelFunc
	exited  chan struct{}

	alive context.Context // if not, nothing that it does has an effect any more
	die   context.CancelFunc
}

// connect makes the program use the proxy.
func (s *session) connect() (end func(), err error) {
	s.program.proxy = s.proxy
	return func() {}, nil
}

// start starts the program, unless it runs.
func (p *program) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.process != nil {
		return errors.New("the program is running already")
	}
	x := &process{program: p, exited: make(chan struct{})}
	ctx := klog.NewContext(context.Background(), textlogger.NewLogger(textlogger.NewConfig(
		textlogger.Verbosity(5), textlogger.Output(x))))
	ctx, x.stop = context.WithCancel(ctx)
	x.alive, x.die = context.WithCancel(context.Background())
	setCluster(&rest.Config{Host: "http://page", QPS: -1, Transport: p.proxy.Transport(x.alive)})
	p.process = x
	p.changed(model.Program{Command: p.title, Running: true})
	go func() {
		note := "It ended: exit status 0."
		if err := p.run(ctx); err != nil {
			note = fmt.Sprintf("It ended: %v.", err)
		}
		x.end(note)
		close(x.exited)
	}()
	return nil
}

// end notes that the process has ended, and how.
func (x *process) end(note string) {
	p := x.program
	p.mu.Lock()
	defer p.mu.Unlock()
	if x.alive.Err() != nil {
		return
	}
	x.die()
	p.process = nil
	p.changed(model.Program{Command: p.title, Note: note})
}

// Write gets what the process logs, record by record.
func (x *process) Write(record []byte) (int, error) {
	if x.alive.Err() == nil {
		for line := range bytes.Lines(record) {
			x.program.logged(string(bytes.TrimSuffix(line, []byte("\n"))))
		}
	}
	return len(record), nil
}

// signal sends a signal to the program, and waits until it has ended.
func (p *program) signal(signal syscall.Signal) error {
	p.mu.Lock()
	x := p.process
	p.mu.Unlock()
	if x == nil {
		return errors.New("the program is not running")
	}
	if signal == syscall.SIGKILL {
		x.end("It ended: signal: killed.")
		x.stop()
		return nil
	}
	x.stop()
	return awaitExit(x.exited)
}

// stop ends the program if it runs.
func (p *program) stop() { _ = p.signal(syscall.SIGKILL) }
