package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	appsclient "k8s.io/client-go/kubernetes/typed/apps/v1"
	"k8s.io/client-go/tools/leaderelection"
)

func TestBadFlagsAreRefusedWithOneLine(t *testing.T) {
	for args, want := range map[string]string{
		"--nope":                 "flag provided but not defined: -nope",
		"--workers=0":            "--workers must be at least 1, not 0",
		"--kube-api-qps=0":       "--kube-api-qps must be positive, or -1 for no limit",
		"--kube-api-burst=0":     "--kube-api-burst must be at least 1, not 0",
		"--resync=-1s":           "--resync must not be negative, but is -1s",
		"--cache-sync-timeout=0": "--cache-sync-timeout must be positive, not 0s",
		"foos":                   `unexpected argument "foos"`,
	} {
		_, err := parseFlags([]string{args}, io.Discard)
		if want += "; --help lists all flags"; err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %q", args, err, want)
		}
	}
}

func TestHelpListsTheFlags(t *testing.T) {
	var help strings.Builder
	if _, err := parseFlags([]string{"--help"}, &help); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("error: got %v, want flag.ErrHelp", err)
	}
	for _, name := range []string{"kubeconfig", "namespace", "workers", "kube-api-qps", "kube-api-burst",
		"resync", "leader-elect", "metrics-bind-address", "health-probe-bind-address",
		"cache-sync-timeout", "v", "logging-format", "version"} {
		if !strings.Contains(help.String(), "\n  -"+name+" ") && !strings.Contains(help.String(), "\n  -"+name+"\n") {
			t.Errorf("--help does not list -%s", name)
		}
	}
}

// runAgainst runs the process on an API server that answers every request with code, until it
// fails.
func runAgainst(t *testing.T, code int) error {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "injected", code)
	}))
	defer server.Close()
	return runWith(t, server.URL)
}

// runWith runs the process with a kubeconfig that names an API server at url.
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
	return runController(t.Context(), func(error) {}, o)
}

func TestStartFailsWithWhatToDo(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	for name, test := range map[string]struct {
		err  error
		want []string
	}{
		"no cluster":        {runWith(t, closed.URL), []string{"does not answer", "make cluster", "--kubeconfig"}},
		"no CRD":            {runAgainst(t, http.StatusNotFound), []string{"foos.samplecontroller.k8s.io", "kubectl apply -f artifacts/examples/crd.yaml"}},
		"wrong credentials": {runAgainst(t, http.StatusUnauthorized), []string{"refuses the credentials"}},
	} {
		for _, want := range test.want {
			if test.err == nil || !strings.Contains(test.err.Error(), want) {
				t.Errorf("%s: got %v, want it to say %q", name, test.err, want)
			}
		}
	}
}

func TestNoClusterConfiguredSaysWhatToDo(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "absent"))
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	_, err := newClients(&options{qps: -1})
	if err == nil || !strings.Contains(err.Error(), "make cluster") {
		t.Errorf("got %v, want it to say 'make cluster'", err)
	}
}

func TestPortInUseSaysWhatToDo(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	address := listener.Addr().String()
	err = serve(t.Context(), "metrics-bind-address", address, http.NotFoundHandler())
	want := address + " is in use: choose another address with --metrics-bind-address, or 0 for none"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %q", err, want)
	}
}

func TestReadyzFollowsItsCheck(t *testing.T) {
	var ready atomic.Bool
	handler := healthHandler(func(*http.Request) error { return nil }, func(*http.Request) error {
		if !ready.Load() {
			return errors.New("not yet")
		}
		return nil
	})
	get := func(path string) int {
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, nil))
		return recorder.Code
	}
	if got := get("/readyz"); got != http.StatusServiceUnavailable {
		t.Errorf("/readyz before: got %d, want 503", got)
	}
	if got := get("/healthz"); got != http.StatusOK {
		t.Errorf("/healthz before: got %d, want 200", got)
	}
	ready.Store(true)
	if got := get("/readyz"); got != http.StatusOK {
		t.Errorf("/readyz after: got %d, want 200", got)
	}
}

func TestForbiddenWatchEndsTheProcess(t *testing.T) {
	var failure error
	handler := watchErrorHandler(func(err error) { failure = err })
	handler(t.Context(), nil, apierrors.NewForbidden(deploymentsResource, "", errors.New("no list")))
	if failure == nil || !strings.Contains(failure.Error(), "grant it") {
		t.Errorf("got %v, want it to say what to do", failure)
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
	bubble(t, func(h *harness) {
		h.client = slowClient{h.kube}
		h.start()
		for _, name := range []string{"a", "b", "c"} { // one more than there are workers
			h.createFoo(newFoo(name, name, nil))
		}
		begin := time.Now()
		h.stop()

		if got := time.Since(begin).Round(time.Second); got != 3*time.Second {
			t.Errorf("stopping took %v, want the 3s of the requests under way", got)
		}
		if !h.deploymentExists("a") || !h.deploymentExists("b") || h.deploymentExists("c") {
			t.Error("want the two Deployments that had begun, and not the third")
		}
		if got := h.events()["DeploymentCreated"]; got != 2 {
			t.Errorf("events written before the end: got %d, want 2", got)
		}
	})
}

// leaderClients returns clients for lead, and the options with their defaults.
func leaderClients(t *testing.T, h *harness) (*clients, leaderElectionOptions) {
	t.Helper()
	o, err := parseFlags([]string{"--leader-elect"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return &clients{leases: h.kube.CoordinationV1(), namespace: namespace}, o.leaderElection
}

func (h *harness) leaseHolder() string {
	h.t.Helper()
	lease, err := h.kube.CoordinationV1().Leases(namespace).Get(
		context.Background(), "sample-controller", metav1.GetOptions{})
	if err != nil {
		h.t.Fatal(err)
	}
	return *lease.Spec.HolderIdentity
}

func TestLeaseIsHeldUntilTheWorkIsDone(t *testing.T) {
	bubble(t, func(h *harness) {
		clients, o := leaderClients(t, h)
		ctx, cancel := context.WithCancel(h.t.Context())
		done := make(chan error)
		go func() {
			done <- lead(ctx, clients, o, leaderelection.NewLeaderHealthzAdaptor(0), func(ctx context.Context) {
				<-ctx.Done()
				time.Sleep(30 * time.Second) // longer than the Lease lasts without renewal
				if h.leaseHolder() == "" {
					t.Error("the Lease was released before the work was done")
				}
			})
		}()
		synctest.Wait()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("got %v, want no error", err)
		}
		if got := h.leaseHolder(); got != "" {
			t.Errorf("holder afterwards: got %q, want none", got)
		}
	})
}

func TestStandbyWaitsAndStops(t *testing.T) {
	bubble(t, func(h *harness) {
		clients, o := leaderClients(t, h)
		leaderCtx, stopLeader := context.WithCancel(h.t.Context())
		standbyCtx, stopStandby := context.WithCancel(h.t.Context())
		var working atomic.Int32
		work := func(ctx context.Context) {
			working.Add(1)
			<-ctx.Done()
			working.Add(-1)
		}
		stopped := make(chan error, 2)
		for _, ctx := range []context.Context{leaderCtx, standbyCtx} {
			go func() {
				stopped <- lead(ctx, clients, o, leaderelection.NewLeaderHealthzAdaptor(0), work)
			}()
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		if got := working.Load(); got != 1 {
			t.Errorf("at work: got %d of 2, want 1", got)
		}
		stopStandby()
		if err := <-stopped; err != nil {
			t.Errorf("standby: got %v, want no error", err)
		}
		if got := working.Load(); got != 1 {
			t.Errorf("at work without the standby: got %d, want 1", got)
		}
		stopLeader()
		<-stopped
	})
}

func TestLostLeaseIsAnError(t *testing.T) {
	bubble(t, func(h *harness) {
		clients, o := leaderClients(t, h)
		lost := make(chan error)
		go func() {
			lost <- lead(h.t.Context(), clients, o, leaderelection.NewLeaderHealthzAdaptor(0),
				func(ctx context.Context) { <-ctx.Done() })
		}()
		synctest.Wait()
		h.answer("update", "leases", 1000, apierrors.NewInternalError(errors.New("injected")))
		if err := <-lost; err == nil {
			t.Error("got no error, want one")
		}
	})
}
