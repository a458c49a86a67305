// Package apply shows on a real API server what docs/server-side-apply.md says, and measures what a
// status costs that is applied. It starts a control plane of its own.
package apply

import (
	"flag"
	"testing"

	"k8s.io/client-go/kubernetes"
	appsclient "k8s.io/client-go/kubernetes/typed/apps/v1"

	"example.com/sample-controller/internal/testing/cluster"
	fooclient "example.com/sample-controller/pkg/generated/clientset/versioned/typed/samplecontroller/v1alpha1"
)

const (
	root      = "../../"
	namespace = "default"
	// fieldManager is the name under which these tests apply.
	fieldManager = "lesson"
)

// The clients.
var (
	kubeClient  kubernetes.Interface
	deployments appsclient.DeploymentInterface
	foos        fooclient.FooInterface
)

func TestMain(m *testing.M) {
	flag.Parse()
	cluster.Main(root, "apply", func(c *cluster.Cluster) (code int, err error) {
		kubeClient, deployments = c.Kube, c.Kube.AppsV1().Deployments(namespace)
		foos = c.Foos.SamplecontrollerV1alpha1().Foos(namespace)
		return m.Run(), nil
	})
}
