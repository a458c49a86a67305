package conformance

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync"

	"example.com/sample-controller/examples/website/outside"
	"example.com/sample-controller/internal/testing/suite"
)

// theRegistry is the registry of all tests.
var theRegistry = newRegistry()

// registry is a registry that can fail for one namespace alone.
type registry struct {
	*httptest.Server
	working http.Handler

	mu         sync.Mutex
	namespaces map[string]string           // by the IDs of the Websites
	failures   map[string]http.HandlerFunc // by namespace
}

func newRegistry() *registry {
	r := &registry{
		working:    outside.NewServer(),
		namespaces: map[string]string{}, failures: map[string]http.HandlerFunc{},
	}
	r.Server = httptest.NewServer(r)
	return r
}

func (r *registry) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return // the client is gone
	}
	request.Body = io.NopCloser(bytes.NewReader(body))
	r.failure(path.Base(request.URL.Path), body)(w, request)
}

// failure returns the failure of a request about the Website of that ID, or else what answers it. A
// DELETE has no body, so the namespace is that of the last PUT.
func (r *registry) failure(id string, body []byte) http.HandlerFunc {
	r.mu.Lock()
	defer r.mu.Unlock()
	var entry outside.Entry
	if json.Unmarshal(body, &entry) == nil {
		r.namespaces[id], _, _ = strings.Cut(entry.Name, "/")
	}
	if failure := r.failures[r.namespaces[id]]; failure != nil {
		return failure
	}
	return r.working.ServeHTTP
}

// refuse is a registry that cannot do what it is asked for.
func refuse(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "try again later", http.StatusServiceUnavailable)
}

// hangUp is a registry that is down: the client gets no answer.
func hangUp(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// registryFails makes the registry fail for the namespace, until failure is nil.
func (n *namespace) registryFails(failure http.HandlerFunc) {
	theRegistry.mu.Lock()
	defer theRegistry.mu.Unlock()
	theRegistry.failures[n.Name] = failure
}

// registered returns what the registry knows of a Website: its URLs, by ID.
func (n *namespace) registered(name string) map[string]string {
	n.T.Helper()
	response, err := http.Get(theRegistry.URL + "/entries")
	if err != nil {
		n.T.Fatal(err)
	}
	defer response.Body.Close()
	var all map[string]outside.Entry
	if err := json.NewDecoder(response.Body).Decode(&all); err != nil {
		n.T.Fatal(err)
	}
	urls := map[string]string{}
	for id, entry := range all {
		if entry.Name == n.Name+"/"+name {
			urls[id] = entry.URL
		}
	}
	return urls
}

// registryKnows waits until the registry knows the Website by these URLs, and by no other.
func (n *namespace) registryKnows(name string, urls ...string) {
	n.T.Helper()
	what := "the registry knows Website " + name + " by " + strings.Join(urls, " and ")
	suite.Eventually(n.T, what, func() (bool, string) {
		var known []string
		for _, url := range n.registered(name) {
			known = append(known, url)
		}
		return slices.Equal(known, urls), strings.Join(known, " and ")
	})
}

// registryForgets makes the registry forget a Website, as if it had lost everything.
func (n *namespace) registryForgets(name string) {
	n.T.Helper()
	client, err := outside.NewClient(theRegistry.URL, nil)
	if err != nil {
		n.T.Fatal(err)
	}
	for id := range n.registered(name) {
		if err := client.Delete(n.T.Context(), id); err != nil {
			n.T.Fatal(err)
		}
	}
}
