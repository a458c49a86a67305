// Package process is the frame of a controller's process: the command line, the signals that end it,
// the clients for the API server, the probes and the metrics, and the order in which all of it starts
// and ends.
package process

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/version"
	"k8s.io/klog/v2"
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
	if o.Version {
		fmt.Printf("%s %s, commit %s\n", o.name, version.Get(), version.Get().GitCommit)
		return nil
	}
	if err := logsapi.ValidateAndApply(o.Logging, nil); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	klog.FromContext(ctx).Info("Starting", "version", version.Get().GitVersion)
	return run(ctx)
}
