package suite

import (
	"crypto/tls"
	"io"
	"net/http"
	"os"
	"regexp"
	"testing"

	"example.com/sample-controller/internal/testing/freeport"
	"example.com/sample-controller/internal/testing/must"
)

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
	text := must.Get(io.ReadAll(response.Body))(t)
	return response.StatusCode, string(text)
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
