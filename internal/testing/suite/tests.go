package suite

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"example.com/sample-controller/internal/testing/freeport"
	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/suite/audit"
)

// RequestsNothing fails t unless a controller requests nothing but watches and its Lease once all
// is done. prepare makes the objects that it has to do with, and waits for them.
func RequestsNothing(t *testing.T, prepare func(*Namespace)) {
	n := NewNamespace(t)
	program := StartProgram(t, LeaderFlags, In(n))
	prepare(n)
	n.CatchUp()

	// Events may be written a little later than what they report. And on a busy machine, keys may
	// still wait in the queue that the last object has overtaken.
	left := 5
	what := fmt.Sprintf("the controller requests nothing for %v", idleTime)
	Eventually(t, what, func() (bool, string) {
		begin := Now(t)
		time.Sleep(idleTime) // nothing may be requested in this time
		requests := program.Requests(t, begin, func(r audit.Request) bool {
			inOrNowhere := n.Has(r) || r.ObjectRef.Namespace == ""
			return inOrNowhere && !r.IsWatch() && r.ObjectRef.Resource != "leases"
		})
		if left--; left == 0 && len(requests) > 0 {
			t.Fatalf("nothing has changed for long, but in %v the controller made %d requests; one of them: %v",
				idleTime, len(requests), requests[0])
		}
		return len(requests) == 0, fmt.Sprintf("%d requests", len(requests))
	})
}

// RestartWritesNothing fails t if a controller writes anything when it starts with everything in
// sync. prepare makes the objects that it has to do with, and waits for them.
func RestartWritesNothing(t *testing.T, prepare func(*Namespace)) {
	n := NewNamespace(t)
	first := StartProgram(t, "", nil)
	prepare(n)
	n.CatchUp()
	StopProgram(t, first)

	begin := Now(t)
	second := StartProgram(t, "", nil)
	Eventually(t, "the controller has begun to watch", func() (bool, string) {
		watches := second.Requests(t, begin, audit.Request.IsWatch)
		return len(watches) >= 2, fmt.Sprint(watches)
	})
	last := n.CatchUp()

	writes := second.Requests(t, begin, func(r audit.Request) bool {
		// A Create that is refused because the name is taken changes nothing.
		return n.Has(r) && r.IsWrite() && !isConflict(r) && !isAbout(r, last)
	})
	if len(writes) > 0 {
		t.Errorf("everything was in sync, but the restarted controller wrote: %v", writes)
	}
}

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
		{"no API server", Server("https://127.0.0.1:1"), []string{"127.0.0.1:1", "KUBECONFIG"}},
		{"no CRD", Server(serverWithoutGroup(t)), []string{config.Resource, "kubectl apply -f"}},
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

// Server returns a function that makes the kubeconfig lead to the server at url.
func Server(url string) func(*clientcmdapi.Config) {
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
	proxy := httputil.NewSingleHostReverseProxy(must.Get(url.Parse(Cluster.Host))(t))
	proxy.Transport = must.Get(rest.TransportFor(Cluster))(t)
	mux := http.NewServeMux()
	mux.Handle("/", proxy)
	mux.Handle("/apis/"+groupVersion().Group+"/", http.NotFoundHandler())
	without := httptest.NewServer(mux)
	t.Cleanup(without.Close)
	return without.URL
}

// GetMetrics requests the metrics over HTTPS, with that token, and returns the answer.
func GetMetrics(t *testing.T, address, token string) (code int, body string) {
	t.Helper()
	request := must.Get(http.NewRequest(http.MethodGet, "https://"+address+"/metrics", nil))(t)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true,
	}}
	response := must.Get(client.Do(request))(t)
	defer response.Body.Close()
	return response.StatusCode, string(must.Get(io.ReadAll(response.Body))(t))
}

// ServesMetricsNamedIn fails t unless a controller serves all metrics that a file names. names
// matches them, and prepare makes the objects without which some of them have no series.
func ServesMetricsNamedIn(t *testing.T, path, names string, prepare func(*Namespace)) {
	t.Helper()
	text := must.Get(os.ReadFile(path))(t)
	n := NewNamespace(t)
	address := freeport.Address(t)
	StartProgram(t, LeaderFlags+" --metrics-bind-address="+address, In(n))
	prepare(n)
	response := must.Get(http.Get("http://" + address + "/metrics"))(t)
	defer response.Body.Close()
	served := must.Get(io.ReadAll(response.Body))(t)
	found := regexp.MustCompile(names).FindAllString(string(text), -1)
	if len(found) < 5 {
		t.Errorf("%s names only the metrics %q, want at least 5", path, found)
	}
	for _, name := range found {
		if !regexp.MustCompile(`(?m)^` + name + `(_count)?[{ ]`).Match(served) {
			t.Errorf("%s names %s, but the controller does not serve it", path, name)
		}
	}
}
