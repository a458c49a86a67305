package process

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

// Options holds what the command line of every controller sets.
type Options struct {
	Kubeconfig       string
	Namespace        string
	Workers          int
	QPS              float64
	Burst            int
	CacheSyncTimeout time.Duration
	Metrics          metrics.Config // without its client
	HealthAddress    string
	LeaderElect      bool
	Leader           leader.Config // without its client
	Logging          *logsapi.LoggingConfiguration
	Version          bool

	name string
}

// FlagSet returns the flags of every controller, for a program of that name. The caller adds its
// own flags, and then calls Parse. objects says what it syncs, "Foos" for example.
func (o *Options) FlagSet(name, objects string) *flag.FlagSet {
	o.name, o.Leader.Name, o.Logging = name, name, logsapi.NewLoggingConfiguration()
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	fs.SetOutput(io.Discard) // an error is one line, printed by Main
	fs.StringVar(&o.Kubeconfig, "kubeconfig", "", "Path to a kubeconfig `file`. "+
		"(default: $KUBECONFIG, ~/.kube/config or, in a Pod, its ServiceAccount)")
	fs.StringVar(&o.Namespace, "namespace", "", "The only `namespace` to work in. (default: all)")
	fs.IntVar(&o.Workers, "workers", 16, objects+" to sync at a time.")
	fs.Float64Var(&o.QPS, "kube-api-qps", -1, "Requests per second to the API server, on average; "+
		"-1 means no limit here: the API server has its own, API Priority and Fairness.")
	fs.IntVar(&o.Burst, "kube-api-burst", 100, "Requests that may exceed --kube-api-qps at once.")
	fs.DurationVar(&o.CacheSyncTimeout, "cache-sync-timeout", 2*time.Minute,
		"How long to wait for the first lists of "+objects+", and of what belongs to them.")
	fs.StringVar(&o.HealthAddress, "health-probe-bind-address", ":8081",
		"`Address` to serve /healthz and /readyz on; 0 is none.")
	fs.BoolVar(&o.Version, "version", false, "Print the version and exit.")
	o.addMetricsFlags(fs)
	o.addLeaderFlags(fs)
	logsapi.AddGoFlags(o.Logging, fs)
	return fs
}

func (o *Options) addMetricsFlags(fs *flag.FlagSet) {
	fs.StringVar(&o.Metrics.Address, "metrics-bind-address", "127.0.0.1:8080",
		"`Address` to serve /metrics on; 0 is none.")
	fs.BoolFunc("metrics-secure", "Serve /metrics over HTTPS, and only to clients that the API "+
		"server allows to get it. (default: true, unless the address is a loopback address)",
		func(value string) error {
			secure, err := strconv.ParseBool(value)
			o.Metrics.Secure = &secure
			return err
		})
	fs.StringVar(&o.Metrics.CertDir, "metrics-cert-path", "", "`Directory` of the certificate for "+
		"--metrics-secure: tls.crt and tls.key. They may be renewed. (default: a self-signed one)")
	fs.BoolVar(&o.Metrics.Profiling, "profiling", false, "Serve profiles of the Go runtime on "+
		"/debug/pprof/, on the address of the metrics and with the same protection.")
}

func (o *Options) addLeaderFlags(fs *flag.FlagSet) {
	fs.BoolVar(&o.LeaderElect, "leader-elect", false,
		"Work only while holding a Lease. Needed when more than one replica runs.")
	fs.DurationVar(&o.Leader.LeaseDuration, "leader-elect-lease-duration", 15*time.Second,
		"How long the others wait for a leader that is silent.")
	fs.DurationVar(&o.Leader.RenewDeadline, "leader-elect-renew-deadline", 10*time.Second,
		"How long a leader tries to renew before it gives up.")
	fs.DurationVar(&o.Leader.RetryPeriod, "leader-elect-retry-period", 2*time.Second,
		"How long to wait between two tries.")
	fs.StringVar(&o.Leader.Namespace, "leader-elect-resource-namespace", "",
		"`Namespace` of the Lease. (default: that of the kubeconfig's context or the Pod)")
}

// Parse parses args, and calls validate for the program's own flags. With --help, it prints the
// flags to usage, after a line that says what the program does, and returns flag.ErrHelp.
func (o *Options) Parse(
	fs *flag.FlagSet, args []string, usage io.Writer, does string, validate func() error,
) error {
	err := fs.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(usage, "%s %s.\n\nFlags:\n", o.name, does)
		fs.SetOutput(usage)
		fs.PrintDefaults()
		return err
	}
	if err == nil {
		err = o.validate(fs.Args())
	}
	if err == nil {
		err = validate()
	}
	if err != nil {
		return fmt.Errorf("%w; --help lists all flags", err)
	}
	return nil
}

// validate refuses wrong values that can be parsed. args are the arguments that are not flags.
func (o *Options) validate(args []string) error {
	switch {
	case len(args) > 0:
		return fmt.Errorf("unexpected argument %q", args[0])
	case o.Namespace != "" && len(validation.IsDNS1123Label(o.Namespace)) > 0:
		return fmt.Errorf("--namespace: %q cannot be the name of a namespace: %s", o.Namespace,
			strings.Join(validation.IsDNS1123Label(o.Namespace), "; "))
	case o.Workers < 1:
		return fmt.Errorf("--workers must be at least 1, not %d", o.Workers)
	case o.QPS <= 0 && o.QPS != -1:
		return errors.New("--kube-api-qps must be positive, or -1 for no limit")
	case o.Burst < 1:
		return fmt.Errorf("--kube-api-burst must be at least 1, not %d", o.Burst)
	case o.CacheSyncTimeout <= 0:
		return fmt.Errorf("--cache-sync-timeout must be positive, not %v", o.CacheSyncTimeout)
	}
	return o.Metrics.Validate()
}
