package process

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// A probe is one small request on a connection of its own, and the answer is at hand. So a client
// that takes up more than this is not a kubelet.
const (
	probeTimeout        = 5 * time.Second
	maxProbeHeaderBytes = 4 << 10
	maxProbes           = 2000
)

// Check returns what is wrong, or nil.
type Check func(*http.Request) error

// ServeProbes answers a kubelet's probes until ctx is done: /healthz, by which it decides whether to
// restart the container, and /readyz, by which it decides whether the Pod counts as available.
// Errors name the flag of the address, --health-probe-bind-address. The address "0" serves nothing.
func ServeProbes(ctx context.Context, address string, healthy, ready Check) error {
	server := newProbeServer(healthy, ready)
	return serve(ctx, "health-probe-bind-address", address, server, maxProbes, nil)
}

func newProbeServer(healthy, ready Check) *http.Server {
	server := NewServer(probeHandler(healthy, ready))
	server.MaxHeaderBytes = maxProbeHeaderBytes
	server.ReadHeaderTimeout, server.ReadTimeout = probeTimeout, probeTimeout
	server.WriteTimeout = probeTimeout
	server.SetKeepAlivesEnabled(false)
	return server
}

// probeHandler answers with 200 if nothing is wrong, or with 503 and what is wrong.
func probeHandler(healthy, ready Check) http.Handler {
	mux := http.NewServeMux()
	for path, check := range map[string]Check{"/healthz": healthy, "/readyz": ready} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			if err := check(r); err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
				return
			}
			fmt.Fprintln(w, "ok")
		})
	}
	return mux
}
