package process

import (
	"cmp"
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"example.com/sample-controller/internal/clientconfig"
	"example.com/sample-controller/internal/informers"
	"example.com/sample-controller/internal/leader"
	"example.com/sample-controller/internal/metrics"
)

// PreflightTimeout limits the time that Preflight may take.
const PreflightTimeout = 10 * time.Second

// Clients holds the clients for the API server that every controller has.
type Clients struct {
	Kube kubernetes.Interface
	// Config is for the clients of custom resources, which do not support Protobuf.
	Config *rest.Config
	// Leader has a client without --kube-api-qps: a busy controller must not lose its Lease.
	Leader  leader.Config
	Elector *leader.Elector
	// Metrics has such a client, too, to ask who may get the metrics: a scrape must not wait.
	Metrics metrics.Config
}

// Load returns how clients reach the cluster of --kubeconfig. If no flag sets the namespace of the
// Lease, Load sets it: to that of the kubeconfig's context, or of the Pod.
func (o *Options) Load() (*rest.Config, error) {
	config, namespace, err := clientconfig.LoadWithNamespace(o.Kubeconfig)
	o.Leader.Namespace = cmp.Or(o.Leader.Namespace, namespace)
	return config, err
}

// NewClients returns clients for a cluster. It makes no request.
func NewClients(config *rest.Config, o *Options) (_ *Clients, err error) {
	config = rest.CopyConfig(config)
	c := &Clients{Config: config, Leader: o.Leader, Metrics: o.Metrics}
	rest.AddUserAgent(config, o.name)
	if c.Metrics.Reviews, err = kubernetes.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("creating the client for reviews: %w", err)
	}
	// One request that hangs must not cost the Lease. (resourcelock.NewFromKubeconfig does the same.)
	short := rest.CopyConfig(config)
	short.Timeout = max(time.Second, o.Leader.RenewDeadline/2)
	if c.Leader.Client, err = coordinationclient.NewForConfig(short); err != nil {
		return nil, fmt.Errorf("creating the client for Leases: %w", err)
	}
	if c.Elector, err = leader.NewElector(c.Leader); err != nil {
		return nil, err
	}
	config.QPS, config.Burst = float32(o.QPS), o.Burst
	config.Wrap(informers.WaitUntilServed)
	// Protobuf is cheaper than JSON on both sides.
	protobuf := rest.CopyConfig(config)
	protobuf.ContentType = runtime.ContentTypeProtobuf
	if c.Kube, err = kubernetes.NewForConfig(protobuf); err != nil {
		return nil, fmt.Errorf("creating the Kubernetes client: %w", err)
	}
	return c, nil
}

// Preflight finds out whether the API server answers and serves the custom resource and, if
// needLease, whether it lets this controller read the Lease. Without Preflight, a failure would be
// noticed late or never.
func (c *Clients) Preflight(
	ctx context.Context, resource schema.GroupVersionResource, installHint string, needLease bool,
) error {
	ctx, cancel := context.WithTimeout(ctx, PreflightTimeout)
	defer cancel()
	_, err := c.Metrics.Reviews.Discovery().ServerResourcesForGroupVersionWithContext(
		ctx, resource.GroupVersion().String())
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("the API server at %s does not serve %s; %s",
			c.Config.Host, resource.GroupResource(), installHint)
	case apierrors.IsUnauthorized(err), apierrors.IsForbidden(err):
		return fmt.Errorf("the API server at %s refuses the credentials: %w", c.Config.Host, err)
	case err != nil:
		return fmt.Errorf("the API server at %s does not answer: %w; %s", c.Config.Host, err,
			clientconfig.Hint())
	}
	if !needLease {
		return nil
	}
	leases := c.Leader.Client.Leases(c.Leader.Namespace)
	_, err = leases.Get(ctx, c.Leader.Name, metav1.GetOptions{})
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%w; grant it, or choose a namespace with "+
			"--leader-elect-resource-namespace", err)
	}
	return nil
}
