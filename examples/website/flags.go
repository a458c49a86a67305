package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // adds --logging-format=json

	"example.com/sample-controller/internal/leader"
)

// options holds what the command line sets.
type options struct {
	kubeconfig       string
	namespace        string
	workers          int
	qps              float64
	burst            int
	registry         string
	resync           time.Duration
	cacheSyncTimeout time.Duration
	metricsAddress   string
	healthAddress    string
	leaderElect      bool
	leader           leader.Config // without its client
	logging          *logsapi.LoggingConfiguration
}

// parseFlags returns the options in args. With --help, it prints the flags to usage and returns
// flag.ErrHelp.
func parseFlags(args []string, usage io.Writer) (*options, error) {
	o := &options{
		leader:  leader.Config{Name: controllerName},
		logging: logsapi.NewLoggingConfiguration(),
	}
	fs := flag.NewFlagSet(controllerName, flag.ContinueOnError)
	fs.SetOutput(io.Discard) // an error is one line, printed by main
	o.addFlags(fs)
	logsapi.AddGoFlags(o.logging, fs)

	err := fs.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(usage, "%s serves a page for every Website.\n\nFlags:\n", controllerName)
		fs.SetOutput(usage)
		fs.PrintDefaults()
		return nil, err
	}
	if err == nil {
		err = o.validate(fs.Args())
	}
	if err != nil {
		return nil, fmt.Errorf("%w; --help lists all flags", err)
	}
	return o, nil
}

func (o *options) addFlags(fs *flag.FlagSet) {
	fs.StringVar(&o.kubeconfig, "kubeconfig", "", "Path to a kubeconfig `file`. "+
		"(default: $KUBECONFIG, ~/.kube/config or, in a Pod, its ServiceAccount)")
	fs.StringVar(&o.namespace, "namespace", "", "The only `namespace` to work in. (default: all)")
	fs.IntVar(&o.workers, "workers", 16, "Websites to sync at a time.")
	fs.Float64Var(&o.qps, "kube-api-qps", -1, "Requests per second to the API server, on average; "+
		"-1 means no limit here: the API server has its own, API Priority and Fairness.")
	fs.IntVar(&o.burst, "kube-api-burst", 100, "Requests that may exceed --kube-api-qps at once.")
	fs.StringVar(&o.registry, "registry", "http://127.0.0.1:8090", "`URL` of the registry.")
	fs.DurationVar(&o.resync, "resync", 10*time.Minute, "How often to register every Website again, "+
		"even if nothing changed: the registry may have lost it.")
	fs.DurationVar(&o.cacheSyncTimeout, "cache-sync-timeout", 2*time.Minute,
		"How long to wait for the first lists.")
	fs.StringVar(&o.metricsAddress, "metrics-bind-address", "127.0.0.1:8080", "`Address` to serve "+
		"/metrics on; 0 is none. Unless it is a loopback address, /metrics is served over HTTPS, and "+
		"only to clients that the API server allows to get it.")
	fs.StringVar(&o.healthAddress, "health-probe-bind-address", ":8081",
		"`Address` to serve /healthz and /readyz on; 0 is none.")
	fs.BoolVar(&o.leaderElect, "leader-elect", false,
		"Work only while holding a Lease. Needed when more than one replica runs.")
	fs.DurationVar(&o.leader.LeaseDuration, "leader-elect-lease-duration", 15*time.Second,
		"How long the others wait for a leader that is silent.")
	fs.DurationVar(&o.leader.RenewDeadline, "leader-elect-renew-deadline", 10*time.Second,
		"How long a leader tries to renew before it gives up.")
	fs.DurationVar(&o.leader.RetryPeriod, "leader-elect-retry-period", 2*time.Second,
		"How long to wait between two tries.")
	fs.StringVar(&o.leader.Namespace, "leader-elect-resource-namespace", "",
		"`Namespace` of the Lease. (default: that of the kubeconfig's context or the Pod)")
}

// validate refuses wrong values that can be parsed. args are the arguments that are not flags.
func (o *options) validate(args []string) error {
	switch {
	case len(args) > 0:
		return fmt.Errorf("unexpected argument %q", args[0])
	case o.namespace != "" && len(validation.IsDNS1123Label(o.namespace)) > 0:
		return fmt.Errorf("--namespace: %q cannot be the name of a namespace: %s", o.namespace,
			strings.Join(validation.IsDNS1123Label(o.namespace), "; "))
	case o.workers < 1:
		return fmt.Errorf("--workers must be at least 1, not %d", o.workers)
	case o.qps <= 0 && o.qps != -1:
		return errors.New("--kube-api-qps must be positive, or -1 for no limit")
	case o.burst < 1:
		return fmt.Errorf("--kube-api-burst must be at least 1, not %d", o.burst)
	case o.resync <= 0:
		return fmt.Errorf("--resync must be positive, not %v", o.resync)
	case o.cacheSyncTimeout <= 0:
		return fmt.Errorf("--cache-sync-timeout must be positive, not %v", o.cacheSyncTimeout)
	}
	return nil
}
