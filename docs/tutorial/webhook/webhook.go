// Package webhook serves what API servers ask: admission, and conversion between versions.
//
// An API server calls a webhook over TLS. It verifies the certificate with the caBundle of the object
// that names the webhook. This package only serves the certificate: somebody else, such as
// cert-manager, makes it, renews it, and writes the caBundle. So no webhook needs the right to
// change who is called, and for what.
package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"

	"example.com/sample-controller/internal/process"
)

// AddressFlag and CertDirFlag are the names of the flags for the arguments of Serve.
const (
	AddressFlag = "webhook-bind-address"
	CertDirFlag = "webhook-cert-dir"
)

const (
	// maxConnections are served at a time. An API server keeps up to 25 that are idle.
	maxConnections = 200
	readTimeout    = 10 * time.Second // for the headers and the body
	// answerTimeout is how long an API server waits at most, at admission and for a conversion.
	answerTimeout = 30 * time.Second
)

// Serve serves handler on address, "host:port", until ctx is done. The address "0" serves nothing.
// The files tls.crt and tls.key in certDir are what a Secret of the type kubernetes.io/tls has.
// Serve returns when it listens. The channel closes when the last request has its answer.
func Serve(
	ctx context.Context, address, certDir string, handler http.Handler,
) (answered <-chan struct{}, err error) {
	stopped := make(chan struct{})
	if address == "0" {
		close(stopped)
		return stopped, nil
	}
	pair := &keyPair{
		certificate: filepath.Join(certDir, "tls.crt"), key: filepath.Join(certDir, "tls.key"),
	}
	if err := pair.load(); err != nil {
		return nil, fmt.Errorf("reading the certificate of the webhook: %w; "+
			"put a tls.crt and its tls.key into a folder, and name it with --%s", err, CertDirFlag)
	}
	listener, err := process.Listen(AddressFlag, address)
	if err != nil {
		return nil, err
	}
	// No HTTP/2, since it is not in NextProtos, and no older TLS than an API server speaks.
	config := &tls.Config{MinVersion: tls.VersionTLS13, GetCertificate: pair.get}
	server := newServer(handler)
	go func() {
		err := server.Serve(process.Limit(listener, maxConnections, config))
		if !errors.Is(err, http.ErrServerClosed) {
			utilruntime.HandleErrorWithContext(ctx, err, "Serving the webhook failed")
		}
	}()
	context.AfterFunc(ctx, func() {
		defer close(stopped)
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTimeout)
		defer cancel()
		_ = server.Shutdown(end) // finishes the requests that have begun
	})
	klog.FromContext(ctx).Info("Serving the webhook", "address", listener.Addr().String())
	return stopped, nil
}

func newServer(handler http.Handler) *http.Server {
	server := process.NewServer(handler)
	server.ReadTimeout, server.WriteTimeout = readTimeout, answerTimeout
	server.IdleTimeout = answerTimeout // without it, an API server would connect anew after readTimeout
	return server
}

// keyPair is a certificate and its key, in two files that somebody replaces in time.
type keyPair struct {
	certificate, key string
	last             atomic.Pointer[tls.Certificate] // the last one that could be read
}

// load reads the files. That takes less than the handshake, of which there are few.
func (k *keyPair) load() error {
	pair, err := tls.LoadX509KeyPair(k.certificate, k.key)
	if err == nil {
		k.last.Store(&pair)
	}
	return err
}

// get returns the certificate for a connection. If the files cannot be read, because somebody is
// just replacing them, the last certificate still serves.
func (k *keyPair) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if err := k.load(); err != nil {
		utilruntime.HandleError(fmt.Errorf("reading the certificate of the webhook: %w", err))
	}
	return k.last.Load(), nil
}
