package apply

import (
	"flag"
	"net/http"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/kubernetes"
	appsclient "k8s.io/client-go/kubernetes/typed/apps/v1"

	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
	fooclient "example.com/sample-controller/pkg/generated/clientset/versioned/typed/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/internal/cluster"
)

const (
	root      = "../../"
	namespace = "default"
	// fieldManager is the name under which these tests apply.
	fieldManager = "lesson"
)

// The control plane, its clients, and how many requests they have sent.
var (
	controlPlane *cluster.Cluster
	kubeClient   kubernetes.Interface
	deployments  appsclient.DeploymentInterface
	foos         fooclient.FooInterface
	requests     atomic.Int64
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.benchtime", "9x") // rounds of the benchmark
	flag.Parse()
	cluster.Main(root, "apply", func(c *cluster.Cluster) (code int, err error) {
		controlPlane = c
		if err := connect(); err != nil {
			return 1, err
		}
		return m.Run(), nil
	})
}

// connect makes the clients.
func connect() error {
	config, err := controlPlane.Config()
	if err != nil {
		return err
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counter{next} })
	if kubeClient, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	fooClient, err := clientset.NewForConfig(config)
	if err != nil {
		return err
	}
	deployments = kubeClient.AppsV1().Deployments(namespace)
	foos = fooClient.SamplecontrollerV1alpha1().Foos(namespace)
	return nil
}

// counter counts requests.
type counter struct{ http.RoundTripper }

func (c counter) RoundTrip(r *http.Request) (*http.Response, error) {
	requests.Add(1)
	return c.RoundTripper.RoundTrip(r)
}
