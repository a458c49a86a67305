package conformance

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"example.com/sample-controller/internal/testing/suite"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// neverRequested are permissions that are needed although no request uses them: an admission plugin
// checks them. Without this one, the plugin OwnerReferencesPermissionEnforcement refuses a new
// Deployment.
var neverRequested = []string{"update foos/finalizers.samplecontroller.k8s.io"}

func TestDeployedControllerUsesExactlyItsPermissions(t *testing.T) {
	usesExactlyItsPermissions(newNamespace(t), suite.Deploy(t, deployDir, nil))
}

// usesExactlyItsPermissions makes the controller do all that it can do.
func usesExactlyItsPermissions(n *namespace, deployment *appsv1.Deployment) {
	n.T.Helper()
	n.UsesExactlyItsPermissions(deployment, neverRequested, func() {
		n.createReadyFoo(newFoo("web", "old", 1))
		n.Kubectl("scale", "foo/web", "--replicas=2")
		n.deployments.When("old", "has 2 replicas", hasReplicas(2))
		n.foos.Change("web", func(foo *v1alpha1.Foo) { foo.Spec.DeploymentName = "new" })
		n.deployments.Gone("old")
		n.Kubectl("create", "deployment", "foreign", "--image=example.com/foreign")
		n.foos.Create(newFoo("waiting", "foreign", 1))
		n.foos.When("waiting", "is not Ready: "+nameTaken, notReadyBecause(nameTaken))
	})
}

const (
	deployDir = "../../artifacts/deploy"
	// deployedName is the name of the deployed controller and of its namespace.
	deployedName = "sample-controller"
)
