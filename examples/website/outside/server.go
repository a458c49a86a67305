// Package outside is a registry: something outside Kubernetes that a controller keeps in step with
// its objects. It has the server and the client.
package outside

import (
	"encoding/json"
	"maps"
	"net/http"
	"sync"
)

// Entry is what the registry knows of a Website.
type Entry struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

// maxBody is more than any Entry needs.
const maxBody = 16 << 10

// NewServer returns the server of an empty registry:
//
//	PUT /entries/ID     keeps an Entry, in place of what it had under that ID
//	DELETE /entries/ID  forgets it, if it was there
//	GET /entries        answers with all Entries, by ID
//
// PUT and DELETE are idempotent: a client that does not know whether a request has arrived sends it
// again. The registry is only in memory, so it loses everything when its process ends.
func NewServer() http.Handler {
	var mu sync.Mutex
	entries := map[string]Entry{}
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /entries/{id}", func(w http.ResponseWriter, r *http.Request) {
		var entry Entry
		err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&entry)
		if err != nil || entry.URL == "" {
			http.Error(w, "want an entry with a url, in JSON", http.StatusBadRequest)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		entries[r.PathValue("id")] = entry
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("DELETE /entries/{id}", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		delete(entries, r.PathValue("id"))
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("GET /entries", func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		all := maps.Clone(entries)
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(all) // only fails if the client is gone
	})
	return mux
}
