package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"time"

	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // workqueue, REST client, leader election
	_ "k8s.io/component-base/metrics/prometheus/version"  // the build
	"k8s.io/klog/v2"
)

// check says what is wrong, or nil.
type check func(*http.Request) error

// healthHandler serves /healthz, by which a kubelet decides whether to restart the container, and
// /readyz, by which it decides whether the Pod counts as available.
func healthHandler(healthy, ready check) http.Handler {
	mux := http.NewServeMux()
	for path, check := range map[string]check{"/healthz": healthy, "/readyz": ready} {
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

// serve serves handler on address until ctx is done; flagName is the flag that gave the address,
// for the error when it cannot be listened on. The address "0" serves nothing. Without a config, it
// is plain HTTP.
func serve(
	ctx context.Context, flagName, address string, handler http.Handler, config *tls.Config,
) error {
	if address == "0" {
		return nil
	}
	listener, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s is in use: choose another address with --%s, or 0 for none",
			address, flagName)
	}
	if err != nil {
		return fmt.Errorf("listening for --%s: %w", flagName, err)
	}
	if config != nil {
		listener = tls.NewListener(listener, config)
	}
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, ErrorLog: logs.NewLogger(""),
	}
	logger := klog.FromContext(ctx)
	logger.Info("Serving", "flag", flagName, "address", listener.Addr().String())
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			logger.Error(err, "Serving failed", "address", listener.Addr().String())
		}
	}()
	return nil
}
