package main

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"example.com/sample-controller/internal/clientconfig"
	"example.com/sample-controller/internal/leader"
	"example.com/sample-controller/internal/metrics"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
)

// preflightTimeout limits the time that preflight may take.
const preflightTimeout = 10 * time.Second

const installHint = "install the CustomResourceDefinition: " +
	"kubectl apply -f artifacts/examples/crd.yaml"

// clients holds the clients for the API server.
type clients struct {
	host string
	kube kubernetes.Interface
	foo  clientset.Interface
	// leader has a client without --kube-api-qps: a busy controller must not lose its Lease.
	leader leader.Config
	// metrics asks who may get them, without --kube-api-qps, either: a scrape must not wait.
	metrics metrics.Config
}

// newClients returns clients for a cluster. It makes no request.
func newClients(config *rest.Config, o *options) (_ *clients, err error) {
	config = rest.CopyConfig(config)
	c := &clients{host: config.Host, leader: o.leader, metrics: o.metrics}
	if c.leader.Namespace == "" {
		if c.leader.Namespace, err = clientconfig.Namespace(o.kubeconfig); err != nil {
			return nil, err
		}
	}
	rest.AddUserAgent(config, controllerName)
	if c.leader.Client, err = coordinationclient.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("creating the client for Leases: %w", err)
	}
	if c.metrics.Reviews, err = kubernetes.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("creating the client for reviews: %w", err)
	}
	config.QPS, config.Burst = float32(o.qps), o.burst
	if c.foo, err = clientset.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("creating the client for Foos: %w", err)
	}
	// Protobuf is cheaper than JSON on both sides, but custom resources do not support it.
	config.ContentType = runtime.ContentTypeProtobuf
	if c.kube, err = kubernetes.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("creating the Kubernetes client: %w", err)
	}
	return c, nil
}

// preflight finds out whether the API server answers and serves Foos and, if needLease, whether it
// lets this controller read the Lease. Without preflight, that would be noticed late or never.
func (c *clients) preflight(ctx context.Context, needLease bool) error {
	ctx, cancel := context.WithTimeout(ctx, preflightTimeout)
	defer cancel()
	_, err := c.foo.Discovery().ServerResourcesForGroupVersionWithContext(
		ctx, v1alpha1.GroupVersion.String())
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("the API server at %s does not serve %s; %s",
			c.host, v1alpha1.Resource("foos"), installHint)
	case apierrors.IsUnauthorized(err), apierrors.IsForbidden(err):
		return fmt.Errorf("the API server at %s refuses the credentials: %w", c.host, err)
	case err != nil:
		return fmt.Errorf("the API server at %s does not answer: %w; %s", c.host, err,
			clientconfig.Hint())
	}
	if !needLease {
		return nil
	}
	leases := c.leader.Client.Leases(c.leader.Namespace)
	_, err = leases.Get(ctx, c.leader.Name, metav1.GetOptions{})
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%w; grant it, or choose a namespace with "+
			"--leader-elect-resource-namespace", err)
	}
	return nil
}
