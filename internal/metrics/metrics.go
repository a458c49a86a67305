// Package metrics has what the client libraries and the Go runtime measure, in the format of
// Prometheus. Metrics may reveal more than strangers should know. So they can be served over HTTPS,
// and only to clients that the API server allows to get them.
package metrics

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"path/filepath"
	"sync"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/cert"
	"k8s.io/component-base/metrics/legacyregistry"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // workqueue, REST client, leader election
	_ "k8s.io/component-base/metrics/prometheus/version"  // the build
)

// Config says where the metrics are served, and to whom.
type Config struct {
	Address string // to serve on, "host:port"; "0" is none
	// Profiling serves the profiles of the Go runtime, too, on /debug/pprof/.
	Profiling bool
	// Secure serves HTTPS, and only to those who may get the path that they request. If it is nil,
	// the address decides: metrics are plain only if no other machine can reach them.
	Secure *bool
	// CertDir has the certificate for Secure: tls.crt and tls.key, which may be renewed. If it is
	// "", the certificate is self-signed, and nobody can verify it.
	CertDir string
	// Reviews asks the API server who may get them. It needs no rate limit, because it asks seldom.
	Reviews kubernetes.Interface
}

// IsSecure reports whether the metrics are served over HTTPS, and only to those who may get them.
func (c Config) IsSecure() bool {
	if c.Secure != nil {
		return *c.Secure
	}
	return !c.isLoopback()
}

// isLoopback reports whether only this machine can reach the metrics.
func (c Config) isLoopback() bool {
	host, _, _ := net.SplitHostPort(c.Address)
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

// Validate refuses what does not go together. Errors name the flags.
func (c Config) Validate() error {
	switch {
	case c.CertDir != "" && !c.IsSecure():
		return errors.New("--metrics-cert-path needs --metrics-secure")
	case c.Profiling && c.Address == "0":
		return errors.New("--profiling needs a --metrics-bind-address")
	case c.Profiling && !c.isLoopback() && !c.IsSecure():
		return errors.New("--profiling needs --metrics-secure, or a loopback address")
	}
	return nil
}

// TLSConfig returns how the metrics are served over HTTPS, or nil if they are not. Errors name the
// flag, --metrics-cert-path.
func (c Config) TLSConfig() (*tls.Config, error) {
	if !c.IsSecure() {
		return nil, nil
	}
	certificate, err := loadCertificate(c.CertDir)
	if err != nil {
		return nil, fmt.Errorf("loading the certificate of --metrics-cert-path: %w", err)
	}
	// No HTTP/2, since it is not in NextProtos. A scrape does not need it, but an attacker can use it.
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: certificate}, nil
}

// Handler answers requests for the metrics. If they are to be secure, it is behind a guard.
func (c Config) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/metrics", legacyregistry.Handler())
	if c.Profiling {
		// Importing net/http/pprof also registers these on http.DefaultServeMux, which is not served.
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
	if c.IsSecure() {
		return newGuard(c.Reviews, mux)
	}
	return mux
}

type getCertificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)

// loadCertificate returns a function that reads the certificate from dir for each connection, since
// it may be renewed. If dir is "", the function makes a certificate at the first connection.
func loadCertificate(dir string) (getCertificate, error) {
	if dir == "" {
		// It expires after a year. That does not matter, because nobody can verify it anyway.
		selfSigned := sync.OnceValues(func() (*tls.Certificate, error) {
			certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
			if err != nil {
				return nil, err
			}
			pair, err := tls.X509KeyPair(certificate, key)
			return &pair, err
		})
		return func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return selfSigned() }, nil
	}
	read := func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
		return &pair, err
	}
	_, err := read(nil)
	return read, err
}
