package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"syscall"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"example.com/sample-controller/lens/model"
)

// program runs a function as if it was a process.
type program struct {
	title   string
	secret  string // in the path of the proxy
	run     func(context.Context) error
	proxy   string // its address
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
	s.program.proxy, end, err = s.serve(s.proxy)
	return end, err
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
	setCluster(&rest.Config{Host: p.proxy, QPS: -1, Dial: x.dial})
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

// dial connects the process with the proxy in this page: Go has a network of its own there. The
// connection ends with the process.
func (x *process) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if err := x.alive.Err(); err != nil {
		return nil, err
	}
	connection, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err == nil {
		context.AfterFunc(x.alive, func() { connection.Close() })
	}
	return connection, err
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
			text := string(bytes.TrimSuffix(line, []byte("\n")))
			x.program.logged(strings.ReplaceAll(text, x.program.secret, ""))
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
