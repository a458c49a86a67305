package suite

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"example.com/sample-controller/internal/testing/must"
)

// Obstacle is why no controller can work.
type Obstacle struct {
	Name    string
	change  func(*clientcmdapi.Config)
	message []string // what the last line of the output contains
}

// Obstacles returns what a controller cannot work with: no API server, no CustomResourceDefinition,
// no permissions.
func Obstacles(t *testing.T) []Obstacle {
	t.Helper()
	return []Obstacle{
		{"no API server", server("https://127.0.0.1:1"), []string{"127.0.0.1:1", "KUBECONFIG"}},
		{"no CRD", server(serverWithoutGroup(t)), []string{config.Resource, "kubectl apply -f"}},
		{"no permissions", withoutGroups, []string{
			"is forbidden", `cannot list resource "`, "at the cluster scope"}},
	}
}

// IsReported fails t unless a controller exits with 1 because of the obstacle, and says what to do.
// It lets t run in parallel.
func (o Obstacle) IsReported(t *testing.T) {
	t.Helper()
	t.Parallel()
	program := StartProgram(t, "", o.change)
	select {
	case <-program.Exited:
	case <-time.After(Patience):
		t.Fatalf("the controller still runs after %v, want it to exit with 1", Patience)
	}
	if code := program.ExitCode(); code != 1 {
		t.Errorf("the controller exited with %d, want 1", code)
	}
	for _, part := range o.message {
		if line := program.LastLine(); !strings.Contains(line, part) {
			t.Errorf("the controller's last line is %q, want it to contain %q", line, part)
		}
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

// serverWithoutGroup starts a proxy to the API server that does not serve the custom resource, and
// returns its URL.
func serverWithoutGroup(t *testing.T) string {
	t.Helper()
	apiServer := must.Get(url.Parse(Cluster.Host))(t)
	proxy := httputil.NewSingleHostReverseProxy(apiServer)
	proxy.Transport = must.Get(rest.TransportFor(Cluster))(t)
	mux := http.NewServeMux()
	mux.Handle("/", proxy)
	mux.Handle("/apis/"+groupVersion().Group+"/", http.NotFoundHandler())
	without := httptest.NewServer(mux)
	t.Cleanup(without.Close)
	return without.URL
}
