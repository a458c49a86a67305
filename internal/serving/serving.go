// Package serving serves HTTP beside a controller, and says what to do if it cannot.
package serving

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
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

// Start serves handler on address, "host:port", until ctx is done. The address "0" serves nothing.
// Start returns when it listens. If it cannot listen, the error names the flag that set the
// address, flagName.
//
// With a config, Start serves HTTPS, on maxConnections at a time; other clients wait. Without one,
// it serves plain HTTP, and the number of connections has no limit: a kubelet that waits with its
// probe would restart the container.
func Start(
	ctx context.Context, flagName, address string, handler http.Handler, config *tls.Config,
) error {
	if address == "0" {
		return nil
	}
	listener, err := Listen(flagName, address)
	if err != nil {
		return err
	}
	if config != nil {
		listener = tls.NewListener(netutil.LimitListener(listener, maxConnections), config)
	}
	server := newServer(handler)
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

func newServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler: handler, ErrorLog: logs.NewLogger(""), MaxHeaderBytes: maxHeaderBytes,
		ReadHeaderTimeout: headerTimeout, ReadTimeout: requestTimeout, WriteTimeout: requestTimeout,
	}
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
