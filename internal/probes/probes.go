// Package probes answers a kubelet's probes: /healthz, by which it decides whether to restart the
// container, and /readyz, by which it decides whether the Pod counts as available.
package probes

import (
	"context"
	"fmt"
	"net/http"

	"example.com/sample-controller/internal/serving"
)

// Check returns what is wrong, or nil.
type Check func(*http.Request) error

// Serve serves the probes on address, "host:port", until ctx is done. The address "0" serves
// nothing. Errors name the flag, --health-probe-bind-address.
func Serve(ctx context.Context, address string, healthy, ready Check) error {
	return serving.StartProbes(ctx, "health-probe-bind-address", address, handler(healthy, ready))
}

// handler answers with 200 if nothing is wrong, or with 503 and what is wrong.
func handler(healthy, ready Check) http.Handler {
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
