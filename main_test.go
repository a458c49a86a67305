package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/sample-controller/internal/clientconfig"
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
