package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // adds --logging-format=json

	"example.com/sample-controller/internal/leader"
	"example.com/sample-controller/internal/metrics"
)

// options holds what the command line sets.
type options struct {
	kubeconfig       string
	namespace        string
	workers          int
	qps              float64
	burst            int
	resync           time.Duration
	cacheSyncTimeout time.Duration
	metrics          metrics.Config // without its client
	healthAddress    string
	leaderElect      bool
	leader           leader.Config // without its client
	logging          *logsapi.LoggingConfiguration
	version          bool
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
		fmt.Fprintf(usage, "%s keeps a Deployment running for every Foo.\n\nFlags:\n", controllerName)
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
	fs.IntVar(&o.workers, "workers", 16, "Foos to sync at a time.")
	fs.Float64Var(&o.qps, "kube-api-qps", -1, "Requests per second to the API server, on average; "+
		"-1 means no limit here: the API server has its own, API Priority and Fairness.")
	fs.IntVar(&o.burst, "kube-api-burst", 100, "Requests that may exceed --kube-api-qps at once.")
	fs.DurationVar(&o.resync, "resync", 0, "How often to sync every Foo even if nothing changed; "+
		"0 means never. A resync reads the cache, not the API server.")
	fs.DurationVar(&o.cacheSyncTimeout, "cache-sync-timeout", 2*time.Minute,
		"How long to wait for the first lists of Foos and Deployments.")
	fs.StringVar(&o.metrics.Address, "metrics-bind-address", "127.0.0.1:8080",
		"`Address` to serve /metrics on; 0 is none.")
	fs.BoolFunc("metrics-secure", "Serve /metrics over HTTPS, and only to clients that the API "+
		"server allows to get it. (default: true, unless the address is a loopback address)",
		func(value string) error {
			secure, err := strconv.ParseBool(value)
			o.metrics.Secure = &secure
			return err
		})
	fs.StringVar(&o.metrics.CertDir, "metrics-cert-path", "", "`Directory` of the certificate for "+
		"--metrics-secure: tls.crt and tls.key. They may be renewed. (default: a self-signed one)")
	fs.BoolVar(&o.metrics.Profiling, "profiling", false, "Serve profiles of the Go runtime on "+
		"/debug/pprof/, on the address of the metrics and with the same protection.")
	fs.StringVar(&o.healthAddress, "health-probe-bind-address", ":8081",
		"`Address` to serve /healthz and /readyz on; 0 is none.")
	fs.BoolVar(&o.version, "version", false, "Print the version and exit.")

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
	case o.resync < 0:
		return fmt.Errorf("--resync must not be negative, but is %v", o.resync)
	case o.cacheSyncTimeout <= 0:
		return fmt.Errorf("--cache-sync-timeout must be positive, not %v", o.cacheSyncTimeout)
	}
	return o.metrics.Validate()
}
