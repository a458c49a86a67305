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

	"k8s.io/component-base/logs"
	"k8s.io/klog/v2"
)

// Start serves handler on address, "host:port", until ctx is done. The address "0" serves nothing.
// Without a config, it serves plain HTTP. Start returns when it listens. If it cannot listen, the
// error names the flag that set the address, flagName.
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
