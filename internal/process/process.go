// Package process is the frame of a controller's process: the command line, the signals that end it,
// the clients for the API server, the probes and the metrics, and the order in which all of it starts
// and ends.
package process

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/version"
	"k8s.io/klog/v2"

	"example.com/sample-controller/internal/informers"
	"example.com/sample-controller/internal/recorder"
)

// Main runs a program and ends the process: with 1, and a line that says why, if err or the error
// of run is not nil. err is that of Parse. The context of run ends with the first signal that asks
// the process to stop.
func Main(o *Options, err error, run func(context.Context) error) {
	inJSON := err == nil && o.Logging.Format == logsapi.JSONLogFormat
	if err == nil {
		err = o.run(run)
	}
	failed := err != nil && !errors.Is(err, flag.ErrHelp)
	switch {
	case failed && inJSON: // as the rest of the log
		klog.Background().Error(err, "Exiting")
	case failed:
		fmt.Fprintf(os.Stderr, "%s: %s\n", o.name, strings.ReplaceAll(err.Error(), "\n", " "))
	}
	logs.FlushLogs()
	if failed {
		os.Exit(1)
	}
}

func (o *Options) run(run func(context.Context) error) error {
	info := version.Get()
	// The Makefile sets both with -ldflags. Neither go run nor go build does.
	if build, ok := debug.ReadBuildInfo(); ok && strings.Contains(info.GitVersion, "$Format") {
		info.GitVersion, info.GitCommit = build.Main.Version, "unknown"
	}
	if o.Version {
		fmt.Printf("%s %s, commit %s\n", o.name, info.GitVersion, info.GitCommit)
		return nil
	}
	if err := logsapi.ValidateAndApply(o.Logging, nil); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	klog.FromContext(ctx).Info("Starting", "version", info.GitVersion)
	return run(ctx)
}

// flushTimeout limits how long a shutdown, and so the next leader, waits for Events to be written.
const flushTimeout = time.Second

// Process holds the parts of a controller that start and end in an order.
type Process struct {
	Options   *Options
	Clients   *Clients
	Recorder  *recorder.Recorder
	Informers *informers.Group

	// Served is what the API server has to serve; Informers.InstallHint says how it gets that.
	Served schema.GroupVersionResource
	// Work syncs with Options.Workers until ctx is done, and returns when no sync is running.
	Work func(ctx context.Context, workers int)

	// Connect, if it is not nil, is called before Preflight, and waits until the rest can start. What
	// it starts itself may go on until background is done. Ready, if it is not nil, decides on /readyz
	// in place of the informers.
	Connect func(ctx, background context.Context) error
	Ready   Check
}

// Run starts the parts and works until ctx is done, or until it cannot go on, which is an error.
// What started last stops first: no new sync begins, the running syncs finish, their Events are
// written, the Lease is released, the informers and servers stop.
func (p *Process) Run(ctx context.Context) error {
	// fail stops the work as ctx does: syncs that have begun are finished. But Run returns an error.
	workCtx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	// background is for the servers and informers, which must outlive the work.
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()

	if err := p.startServers(background); err != nil {
		return err
	}
	var err error
	if p.Connect != nil {
		err = p.Connect(workCtx, background)
	}
	if err == nil {
		err = p.Clients.Preflight(workCtx, p.Served, p.Informers.InstallHint, p.Options.LeaderElect)
	}
	if ctx.Err() != nil {
		return nil // asked to stop
	}
	if err != nil {
		return err
	}
	if err := p.Informers.Start(workCtx, background, fail); err != nil {
		return err
	}
	work := func(ctx context.Context) {
		p.Work(ctx, p.Options.Workers)
		p.Recorder.Flush(flushTimeout)
	}
	if !p.Options.LeaderElect {
		work(workCtx)
	} else if err := p.Clients.Elector.Run(workCtx, work); err != nil {
		return err
	}
	if ctx.Err() == nil {
		return cmp.Or(context.Cause(workCtx), errors.New("the work has ended by itself"))
	}
	return nil
}

// startServers serves the probes and the metrics until ctx is done.
func (p *Process) startServers(ctx context.Context) error {
	ready := p.Ready
	if ready == nil {
		ready = p.Informers.Check
	}
	if err := ServeProbes(ctx, p.Options.HealthAddress, p.Clients.Elector.Check, ready); err != nil {
		return err
	}
	config, err := p.Clients.Metrics.TLSConfig()
	if err != nil {
		return err
	}
	server := NewServer(p.Clients.Metrics.Handler())
	return serve(ctx, "metrics-bind-address", p.Clients.Metrics.Address, server, maxConnections, config)
}
