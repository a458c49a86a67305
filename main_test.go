package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	appsclient "k8s.io/client-go/kubernetes/typed/apps/v1"

	"example.com/sample-controller/internal/clientconfig"
	"example.com/sample-controller/internal/testing/fakes"
)

// runAgainst runs the process until it fails. Its API server answers the paths in answers as given
// there, and every other request with code.
func runAgainst(t *testing.T, code int, answers map[string]string) error {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answer, ok := answers[r.URL.Path]; ok {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, answer)
			return
		}
		http.Error(w, "injected", code)
	}))
	defer server.Close()
	return runWith(t, server.URL)
}

// runWith runs the process with a kubeconfig for the API server at url.
func runWith(t *testing.T, url string) error {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := `{"clusters":[{"name":"c","cluster":{"server":"` + url + `"}}],` +
		`"contexts":[{"name":"c","context":{"cluster":"c"}}],"current-context":"c"}`
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := parseFlags([]string{"--kubeconfig", kubeconfig,
		"--health-probe-bind-address=127.0.0.1:0", "--metrics-bind-address=127.0.0.1:0"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientconfig.Load(o.kubeconfig)
	if err != nil {
		return err
	}
	p, err := newProcess(t.Context(), config, o, nil)
	if err != nil {
		return err
	}
	return p.run(t.Context())
}

func TestStartFailsWithWhatToDo(t *testing.T) {
	const closed = "http://127.0.0.1:1" // nothing listens on this port
	noCRD := runAgainst(t, http.StatusNotFound, nil)
	for _, test := range []struct {
		err  error
		want string
	}{
		{runWith(t, closed), "does not answer"},
		{runWith(t, closed), "make cluster"},
		{noCRD, "does not serve foos.samplecontroller.k8s.io"},
		{noCRD, "kubectl apply -f artifacts/examples/crd.yaml"},
		{runAgainst(t, http.StatusUnauthorized, nil), "refuses the credentials"},
	} {
		if test.err == nil || !strings.Contains(test.err.Error(), test.want) {
			t.Errorf("got error %v, want it to contain %q", test.err, test.want)
		}
	}
}

func TestForbiddenWatchEndsTheProcess(t *testing.T) {
	err := runAgainst(t, http.StatusForbidden, map[string]string{
		"/apis/samplecontroller.k8s.io/v1alpha1": `{"kind":"APIResourceList","resources":[]}`,
	})
	if err == nil || !strings.Contains(err.Error(), "grant it") {
		t.Errorf(`got error %v, want it to contain "grant it"`, err)
	}
}

func TestBadFlagsAreRefusedWithOneLine(t *testing.T) {
	for args, want := range map[string]string{
		"--nope":            "flag provided but not defined: -nope",
		"--workers=0":       "--workers must be at least 1, not 0",
		"--kube-api-qps=0":  "--kube-api-qps must be positive, or -1 for no limit",
		"--kube-api-qps=-3": "--kube-api-qps must be positive, or -1 for no limit",
		"--namespace=Foos": `--namespace: "Foos" cannot be the name of a namespace: a lowercase RFC ` +
			"1123 label must consist of lower case alphanumeric characters or '-', and must start and " +
			"end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for " +
			"validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
		"--kube-api-burst=0":                   "--kube-api-burst must be at least 1, not 0",
		"--resync=-1s":                         "--resync must not be negative, but is -1s",
		"--cache-sync-timeout=0":               "--cache-sync-timeout must be positive, not 0s",
		"--metrics-cert-path=/":                "--metrics-cert-path needs --metrics-secure",
		"--profiling --metrics-bind-address=0": "--profiling needs a --metrics-bind-address",
		"--profiling --metrics-bind-address=:1 --metrics-secure=false": "--profiling needs " +
			"--metrics-secure, or a loopback address",
		"foos": `unexpected argument "foos"`,
	} {
		_, err := parseFlags(strings.Fields(args), io.Discard)
		if want += "; --help lists all flags"; err == nil || err.Error() != want {
			t.Errorf("%s: got error %v, want %q", args, err, want)
		}
	}
}

func TestHelpListsTheFlags(t *testing.T) {
	var help strings.Builder
	if _, err := parseFlags([]string{"--help"}, &help); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("--help: got error %v, want flag.ErrHelp", err)
	}
	for _, name := range []string{"kubeconfig", "namespace", "workers", "kube-api-qps",
		"kube-api-burst", "resync", "leader-elect", "metrics-bind-address", "metrics-secure",
		"metrics-cert-path", "profiling", "health-probe-bind-address", "cache-sync-timeout", "v", "logging-format",
		"version"} {
		if !regexp.MustCompile(`(?m)^  -` + name + `\b`).MatchString(help.String()) {
			t.Errorf("--help does not list -%s", name)
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
		{[]string{"--metrics-bind-address=0.0.0.0:1"}, true},
		{[]string{"--metrics-bind-address=10.0.0.1:1"}, true},
		{[]string{"--metrics-bind-address=:1", "--metrics-secure=false"}, false},
		{[]string{"--metrics-secure"}, true},
		{[]string{"--profiling"}, false},
		{[]string{"--profiling", "--metrics-secure=false"}, false},
		{[]string{"--profiling", "--metrics-bind-address=:1"}, true},
	} {
		o, err := parseFlags(test.args, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		if got := o.metrics.IsSecure(); got != test.want {
			t.Errorf("%v: secure metrics: got %v, want %v", test.args, got, test.want)
		}
	}
}

// slowClient takes three seconds to create a Deployment.
type slowClient struct{ kubernetes.Interface }

func (c slowClient) AppsV1() appsclient.AppsV1Interface { return slowApps{c.Interface.AppsV1()} }

type slowApps struct{ appsclient.AppsV1Interface }

func (c slowApps) Deployments(namespace string) appsclient.DeploymentInterface {
	return slowDeployments{c.AppsV1Interface.Deployments(namespace)}
}

type slowDeployments struct{ appsclient.DeploymentInterface }

func (c slowDeployments) Create(
	ctx context.Context, deployment *appsv1.Deployment, options metav1.CreateOptions,
) (*appsv1.Deployment, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(3 * time.Second):
		return c.DeploymentInterface.Create(ctx, deployment, options)
	}
}

func TestShutdownFinishesWhatHasBegunAndNoMore(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.client = slowClient{h.kube}
		h.start()
		for _, name := range []string{"a", "b", "c"} { // one more than there are workers
			h.createFoo(newFoo(name, name, nil))
		}
		begin := time.Now()
		h.stop()

		if got := time.Since(begin).Round(time.Second); got != 3*time.Second {
			t.Errorf("stopping took %v, want the 3s of the creates under way", got)
		}
		if !h.deploymentExists("a") || !h.deploymentExists("b") || h.deploymentExists("c") {
			t.Error("want Deployments a and b, whose creates had begun, and not c")
		}
		h.expectEvents("DeploymentCreated", 2) // written before the end
	})
}

func TestNamespaceFlagNarrowsTheWatch(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.options.namespace = "elsewhere"
		h.start()
		h.createFoo(newFoo("example-foo", "web", nil))

		if h.deploymentExists("web") {
			t.Error("a Foo outside --namespace got a Deployment")
		}
	})
}

func TestCacheHoldsOnlyDeploymentsOfFoos(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.createDeployment(foreignDeployment(nil))
		factory, _ := newInformerFactories(&clients{kube: h.kube, foo: h.foo}, &h.options, nil)
		deployments := factory.Apps().V1().Deployments().Informer()
		factory.StartWithContext(t.Context())
		h.start()
		h.createFoo(newFoo("example-foo", "of-a-foo", nil))

		if got := deployments.GetStore().ListKeys(); !slices.Equal(got, []string{"default/of-a-foo"}) {
			t.Errorf("keys in the cache: got %v, want [default/of-a-foo]", got)
		}
	})
}

// TestTwoProcessesDoTheSameWorkTwice shows why there is leader election. Without it, work is wasted
// but nothing breaks: the API server refuses the second Create.
func TestTwoProcessesDoTheSameWorkTwice(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		// Each process tries to create the Deployment before it can see the other's.
		fakes.Lag(t, &h.kube.Fake, "deployments", 5*time.Second)
		h.start()
		h.start()
		h.createFoo(newFoo("example-foo", "web", nil))

		h.expectWrites("create", "deployments", 2) // one from each process
	})
}
