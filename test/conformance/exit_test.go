package conformance

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

func TestProgramThatCannotWorkSaysWhatToDo(t *testing.T) {
	behaviour(t, 16)
	tests := []struct {
		name    string
		change  func(*clientcmdapi.Config)
		message []string // what the last line of its output contains
	}{
		{"no API server", server("https://127.0.0.1:1"), []string{"127.0.0.1:1", "KUBECONFIG"}},
		{"no CRD", server(serverWithoutFoos(t)), []string{"foos", "kubectl apply -f"}},
		{"no permissions", withoutGroups, []string{
			"is forbidden", `cannot list resource "`, "at the cluster scope"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			skipIfExcepted(t)
			t.Parallel()
			program := startProgram(t, "", test.change)
			select {
			case <-program.Exited:
			case <-time.After(*patience):
				t.Fatalf("the controller still runs after %v, want it to exit with 1", *patience)
			}
			if code := program.ExitCode(); code != 1 {
				t.Errorf("the controller exited with %d, want 1", code)
			}
			for _, part := range test.message {
				if line := program.LastLine(); !strings.Contains(line, part) {
					t.Errorf("the controller's last line is %q, want it to contain %q", line, part)
				}
			}
		})
	}
}

// server returns a function that makes the kubeconfig lead to the server at url.
func server(url string) func(*clientcmdapi.Config) {
	return func(config *clientcmdapi.Config) {
		for _, cluster := range config.Clusters {
			*cluster = clientcmdapi.Cluster{Server: url}
		}
	}
}

// withoutGroups takes the kubeconfig's user out of system:masters. Then it may do next to nothing.
func withoutGroups(config *clientcmdapi.Config) {
	for _, user := range config.AuthInfos {
		user.ImpersonateGroups = nil
	}
}

// serverWithoutFoos starts a proxy to the API server that serves no Foos, and returns its URL.
func serverWithoutFoos(t *testing.T) string {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		t.Fatal(err)
	}
	apiServer, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(apiServer)
	if proxy.Transport, err = rest.TransportFor(config); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", proxy)
	mux.Handle("/apis/samplecontroller.k8s.io/", http.NotFoundHandler())
	without := httptest.NewServer(mux)
	t.Cleanup(without.Close)
	return without.URL
}
