package main

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"
)

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
	const closed = "http://127.0.0.1:1" // nobody listens on this port
	noCRD := runAgainst(t, http.StatusNotFound)
	for _, test := range []struct {
		err  error
		want string
	}{
		{runWith(t, closed), "does not answer"},
		{runWith(t, closed), "make cluster"},
		{noCRD, "does not serve foos.samplecontroller.k8s.io"},
		{noCRD, "kubectl apply -f artifacts/examples/crd.yaml"},
		{runAgainst(t, http.StatusUnauthorized), "refuses the credentials"},
	} {
		if test.err == nil || !strings.Contains(test.err.Error(), test.want) {
			t.Errorf("got %v, want it to say %q", test.err, test.want)
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

func TestForbiddenWatchEndsTheProcess(t *testing.T) {
	bubble(t, func(t *testing.T, _ *harness) {
		var failure error
		var synced atomic.Bool
		forbidden := apierrors.NewForbidden(deploymentsResource, "", errors.New("no list"))
		reflector := cache.NewReflector(&cache.ListWatch{}, nil, nil, 0)
		handler := watchErrorHandler(func(err error) { failure = err }, &synced)

		handler(t.Context(), reflector, forbidden)
		if failure == nil || !strings.Contains(failure.Error(), "grant it") {
			t.Errorf("at the start: got %v, want it to say what to do", failure)
		}

		failure = nil
		synced.Store(true)
		time.Sleep(time.Hour)
		for range 2 {
			handler(t.Context(), reflector, forbidden)
			time.Sleep(20 * time.Second)
		}
		if failure != nil {
			t.Errorf("later, for 20s: got %v, want no end", failure)
		}
		handler(t.Context(), reflector, forbidden)
		if failure == nil {
			t.Error("later, for 40s: want the end")
		}
	})
}
