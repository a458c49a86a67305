package process

import (
	"io"
	"strings"
	"testing"

	"example.com/sample-controller/internal/testing/must"
)

func parse(o *Options, args []string, usage io.Writer) error {
	return o.Parse(o.FlagSet("test", "Foos"), args, usage, "does it", func() error { return nil })
}

func TestBadFlagsAreRefusedWithOneLine(t *testing.T) {
	for args, want := range map[string]string{
		"--nope":           "flag provided but not defined: -nope",
		"--workers=0":      "--workers must be at least 1, not 0",
		"--kube-api-qps=0": "--kube-api-qps must be positive, or -1 for no limit",
		"--namespace=Foos": `--namespace: "Foos" cannot be the name of a namespace: a lowercase RFC ` +
			"1123 label must consist of lower case alphanumeric characters or '-', and must start and " +
			"end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for " +
			"validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
		"--kube-api-burst=0":                   "--kube-api-burst must be at least 1, not 0",
		"--cache-sync-timeout=0":               "--cache-sync-timeout must be positive, not 0s",
		"--metrics-cert-path=/":                "--metrics-cert-path needs --metrics-secure",
		"--profiling --metrics-bind-address=0": "--profiling needs a --metrics-bind-address",
		"--profiling --metrics-bind-address=:1 --metrics-secure=false": "--profiling needs " +
			"--metrics-secure, or a loopback address",
		"foos": `unexpected argument "foos"`,
	} {
		err := parse(&Options{}, strings.Fields(args), io.Discard)
		if want += "; --help lists all flags"; err == nil || err.Error() != want {
			t.Errorf("%s: got error %v, want %q", args, err, want)
		}
	}
}

func TestMetricsAreSecureExceptOnALoopbackAddress(t *testing.T) {
	for _, test := range []struct {
		args []string
		want bool
	}{
		{nil, false},
		{[]string{"--metrics-bind-address=localhost:1"}, false},
		{[]string{"--metrics-bind-address=[::1]:1"}, false},
		{[]string{"--metrics-bind-address=:1"}, true},
		{[]string{"--metrics-bind-address=10.0.0.1:1"}, true},
		{[]string{"--metrics-bind-address=:1", "--metrics-secure=false"}, false},
		{[]string{"--metrics-secure"}, true},
	} {
		var o Options
		must.Do(t, parse(&o, test.args, io.Discard))
		if got := o.Metrics.IsSecure(); got != test.want {
			t.Errorf("%v: secure metrics: got %v, want %v", test.args, got, test.want)
		}
	}
}
