package process

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"syscall"
	"time"

	"golang.org/x/net/netutil"
	"k8s.io/component-base/logs"
	"k8s.io/klog/v2"
)

// What a client can take up. Strangers may be among them, so the defaults of net/http are too much:
// 1 MiB for headers, and no end to a connection that is silent.
const (
	headerTimeout = 10 * time.Second // for the TLS handshake, and for the headers
	// requestTimeout limits all else: the body, the answer, and the time until the next request.
	// After this time, the context of a request is canceled. A profile of the CPU takes 30s.
	requestTimeout = 2 * time.Minute
	maxHeaderBytes = 16 << 10 // a token has 1 or 2 KiB
	maxConnections = 100
)

// Limit lets a listener serve this many connections at a time; other clients wait. With a config,
// it speaks TLS.
func Limit(listener net.Listener, connections int, config *tls.Config) net.Listener {
	listener = netutil.LimitListener(listener, connections)
	if config != nil {
		listener = tls.NewListener(listener, config)
	}
	return listener
}

// NewServer returns a server with limits to what a client can take up.
func NewServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler: handler, ErrorLog: log.New(errorLog{}, "", 0), MaxHeaderBytes: maxHeaderBytes,
		ReadHeaderTimeout: headerTimeout, ReadTimeout: requestTimeout, WriteTimeout: requestTimeout,
	}
}

// errorLog logs what a server says. It says a line for each client that does not speak TLS: as in
// the API server, those lines need -v=5, because strangers could fill the log.
type errorLog struct{}

func (errorLog) Write(line []byte) (int, error) {
	if bytes.HasPrefix(line, []byte("http: TLS handshake error")) && !klog.V(5).Enabled() {
		return len(line), nil
	}
	return logs.KlogWriter{}.Write(line)
}

// serve lets server answer on address, "host:port", until ctx is done. The address "0" serves nothing.
// serve returns when it listens. If it cannot listen, the error names the flag that set the address.
// It speaks HTTPS with config, and plain HTTP without one.
func serve(
	ctx context.Context, flagName, address string, server *http.Server, connections int,
	config *tls.Config,
) error {
	if address == "0" {
		return nil
	}
	listener, err := Listen(flagName, address)
	if err != nil {
		return err
	}
	logger := klog.FromContext(ctx)
	logger.Info("Serving", "flag", flagName, "address", listener.Addr().String())
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() {
		err := server.Serve(Limit(listener, connections, config))
		if !errors.Is(err, http.ErrServerClosed) {
			logger.Error(err, "Serving failed", "address", listener.Addr().String())
		}
	}()
	return nil
}

// Listen listens on address, "host:port". Errors name the flag that set it, flagName.
func Listen(flagName, address string) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s is in use: choose another address with --%s, or 0 for none",
			address, flagName)
	}
	if err != nil {
		return nil, fmt.Errorf("listening for --%s: %w", flagName, err)
	}
	return listener, nil
}

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
