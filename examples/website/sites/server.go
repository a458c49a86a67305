// Package sites is a registry of websites: something outside Kubernetes that a controller keeps in
// step with its objects. It has the server and the client.
package sites

import (
	"encoding/json"
	"maps"
	"net/http"
	"sync"
)

// Site is what the registry knows of a website.
type Site struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

// maxBody is more than any Site needs.
const maxBody = 16 << 10

// NewServer returns the server of an empty registry:
//
//	PUT /sites/ID     keeps a Site, in place of what it had under that ID
//	DELETE /sites/ID  forgets it, if it was there
//	GET /sites        answers with all Sites, by ID
//
// PUT and DELETE are idempotent: a client that does not know whether a request has arrived sends it
// again. The registry is only in memory, so it loses everything when its process ends.
func NewServer() http.Handler {
	var mu sync.Mutex
	sites := map[string]Site{}
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /sites/{id}", func(w http.ResponseWriter, r *http.Request) {
		var site Site
		err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&site)
		if err != nil || site.URL == "" {
			http.Error(w, "want a site with a url, in JSON", http.StatusBadRequest)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		sites[r.PathValue("id")] = site
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("DELETE /sites/{id}", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		delete(sites, r.PathValue("id"))
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("GET /sites", func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		all := maps.Clone(sites)
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(all) // only fails if the client is gone
	})
	return mux
}
