package conformance

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"

	"example.com/sample-controller/examples/website/outside"
	"example.com/sample-controller/internal/testing/suite"
)

// theRegistry is the registry of all tests.
var theRegistry = httptest.NewServer(outside.NewServer())

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
