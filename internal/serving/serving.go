// Package serving serves HTTP beside a controller, and says what to do if it cannot.
package serving

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

// Start serves handler on address, "host:port", until ctx is done. The address "0" serves nothing.
// Start returns when it listens. If it cannot listen, the error names the flag that set the
// address, flagName. It serves HTTPS with config, and plain HTTP without one.
func Start(
	ctx context.Context, flagName, address string, handler http.Handler, config *tls.Config,
) error {
	return start(ctx, flagName, address, NewServer(handler), func(l net.Listener) net.Listener {
		return Limit(l, maxConnections, config)
	})
}

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

// start lets server serve what limit makes of a listener.
func start(
	ctx context.Context, flagName, address string, server *http.Server,
	limit func(net.Listener) net.Listener,
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
		if err := server.Serve(limit(listener)); !errors.Is(err, http.ErrServerClosed) {
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

// A probe is one small request on a connection of its own, and the answer is at hand. So whoever
// takes up more than this is not a kubelet.
const (
	probeTimeout        = 5 * time.Second
	maxProbeHeaderBytes = 4 << 10
	maxProbes           = 2000
)

// StartProbes is Start for a kubelet's probes, over plain HTTP. No client waits for another one: a
// kubelet that has to wait would restart the container.
func StartProbes(ctx context.Context, flagName, address string, handler http.Handler) error {
	return start(ctx, flagName, address, newProbeServer(handler), keepNewest)
}

func newProbeServer(handler http.Handler) *http.Server {
	server := NewServer(handler)
	server.MaxHeaderBytes = maxProbeHeaderBytes
	server.ReadHeaderTimeout, server.ReadTimeout = probeTimeout, probeTimeout
	server.WriteTimeout = probeTimeout
	server.SetKeepAlivesEnabled(false)
	return server
}

// newest is a listener that closes the oldest of maxProbes connections when it accepts one more. So
// those who only hold connections do not keep out the next client.
type newest struct {
	net.Listener
	accepted [maxProbes]net.Conn
	next     int // the place of the oldest
}

func keepNewest(listener net.Listener) net.Listener { return &newest{Listener: listener} }

// Accept must not be called by two at a time. An http.Server does not do that.
func (n *newest) Accept() (net.Conn, error) {
	connection, err := n.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if oldest := n.accepted[n.next]; oldest != nil {
		_ = oldest.Close() // it may be closed already
	}
	n.accepted[n.next] = connection
	n.next = (n.next + 1) % maxProbes
	return connection, nil
}
