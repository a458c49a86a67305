// Package webhook serves the webhooks of a controller, with certificates of its own.
//
// An API server calls a webhook only over TLS. It verifies the certificate with a caBundle, the
// CAs that an object names: a CustomResourceDefinition, a ValidatingWebhookConfiguration or a
// MutatingWebhookConfiguration. A Server keeps the private CA in a Secret that all replicas share.
// It makes its certificate itself, renews both long before they expire, and writes the caBundle.
package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"example.com/sample-controller/internal/serving"
)

const (
	// checkInterval is how often a Server looks at the Secret and at the targets without an event.
	checkInterval = time.Hour
	retryDelay    = 5 * time.Second
	syncTimeout   = 10 * time.Second
	// A request of the API server may take this long: it waits 30s for a conversion, and for an
	// admission at most as long.
	requestTimeout = 30 * time.Second
	// maxConnections are served at a time. An API server keeps up to 25 that are idle.
	maxConnections = 200
)

// Config says what a Server serves, and where.
type Config struct {
	Kube    kubernetes.Interface
	Dynamic dynamic.Interface
	Manager string // the field manager of its writes

	FlagName, Address string // the flag, and its value "host:port" to listen on; "0" serves nothing
	Handler           http.Handler
	// Hosts are the names and IP addresses by which API servers call it: NAME.NAMESPACE.svc for a
	// Service.
	Hosts []string
	// The Secret of the CA. The controller needs the verbs create, get and update.
	Namespace, Secret string
	// Targets get the caBundle. The controller needs the verbs get, list, watch and update.
	Targets []Target
}

// Server serves webhooks. Every replica of a controller should run one, with or without the Lease:
// a Service sends requests to all of them.
type Server struct {
	config       Config
	authorities  authorities
	certificates atomic.Pointer[certificates]
	synced       atomic.Bool
	stopped      chan struct{}
}

// New returns a Server. It makes no request.
func New(config Config) *Server {
	return &Server{config: config, stopped: make(chan struct{})}
}

// Start makes the certificates and serves until ctx is done. It returns when it listens. Done says
// when it has answered the last request.
func (s *Server) Start(ctx context.Context) error {
	if s.config.Address == "0" {
		s.synced.Store(true)
		close(s.stopped)
		return nil
	}
	if err := s.renew(ctx); err != nil {
		return fmt.Errorf("preparing the certificates of the webhooks: %w", err)
	}
	listener, err := serving.Listen(s.config.FlagName, s.config.Address)
	if err != nil {
		return err
	}
	// No HTTP/2, since it is not in NextProtos, and no older TLS than an API server speaks.
	config := &tls.Config{MinVersion: tls.VersionTLS13, GetCertificate: s.certificate}
	server := serving.NewServer(s.config.Handler)
	server.ReadTimeout, server.WriteTimeout = requestTimeout, requestTimeout
	go func() {
		err := server.Serve(serving.Limit(listener, maxConnections, config))
		if !errors.Is(err, http.ErrServerClosed) {
			utilruntime.HandleErrorWithContext(ctx, err, "Serving the webhooks failed")
		}
	}()
	context.AfterFunc(ctx, func() {
		defer close(s.stopped)
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
		defer cancel()
		_ = server.Shutdown(end) // finishes the requests that have begun
	})
	klog.FromContext(ctx).Info("Serving webhooks", "address", listener.Addr().String())
	go s.keep(ctx)
	return nil
}

// Done returns a channel that closes after ctx is done, when the last request has its answer.
func (s *Server) Done() <-chan struct{} { return s.stopped }

// Check is a readiness check. It fails until the targets that exist have the caBundle.
//
// A readiness check must not wait for the informers if their lists need these webhooks. The Service
// would send no request to a Pod that is not ready, so the lists would fail for ever.
func (s *Server) Check(*http.Request) error {
	if !s.synced.Load() {
		return errors.New("the caBundle of the webhooks is not written yet")
	}
	return nil
}

func (s *Server) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return &s.certificates.Load().serving, nil
}

// keep keeps the certificates and the targets right until ctx is done: after each event of a
// target, and every checkInterval.
func (s *Server) keep(ctx context.Context) {
	changed := make(chan struct{}, 1)
	for _, target := range s.config.Targets {
		target.watch(ctx, s.config.Dynamic, changed)
	}
	for ctx.Err() == nil {
		delay := wait.Jitter(checkInterval, 0.1)
		if err := s.sync(ctx); err != nil {
			utilruntime.HandleErrorWithContext(ctx, err, "Keeping the certificates failed, will retry")
			delay = retryDelay
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-time.After(delay):
		}
	}
}

// sync renews what ends soon, and writes the caBundle where it is missing. It always reads the
// Secret first: two replicas that know different CAs must not overwrite each other's bundle.
func (s *Server) sync(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	if err := s.renew(ctx); err != nil {
		return err
	}
	for _, target := range s.config.Targets {
		err := target.write(ctx, s.config.Dynamic, s.config.Manager, s.certificates.Load().bundle)
		if err != nil {
			return fmt.Errorf("writing the caBundle of %s %s: %w",
				target.Resource.Resource, target.Name, err)
		}
	}
	s.synced.Store(true)
	return nil
}
