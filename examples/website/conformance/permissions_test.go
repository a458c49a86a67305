package conformance

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/sample-controller/internal/testing/suite"
)

const deployDir = "../artifacts/deploy/"

// neverRequested are permissions that are needed although no request uses them: an admission plugin
// checks them.
var neverRequested = []string{"update websites/finalizers.website.example.com"}

func TestDeployedControllerUsesExactlyItsPermissions(t *testing.T) {
	n := with(suite.NewNamespace(t))
	deployment := suite.Deploy(t, deployDir, nil)
	n.UsesExactlyItsPermissions(deployment, neverRequested, func() {
		n.createUp(newWebsite("web", 1))
		for _, c := range children {
			n.Kubectl("label", c.resource.Resource, "web", managedBy+"-")
			c.of(n).When("web", "has the label again", func(object *unstructured.Unstructured) bool {
				return object.GetLabels()[managedBy] != ""
			})
		}
		n.Kubectl("delete", "website/web")
	})
}

func TestRemovedDeployedControllerKeepsNoPermission(t *testing.T) {
	suite.RemovedKeepsNoPermission(t, deployDir)
}

func TestDeployedMetricsAreForThoseWhoMayGetThem(t *testing.T) {
	suite.MetricsAreForThoseWhoMayGetThem(t, deployDir)
}

func TestDeployedPodsMeetTheRestrictedStandard(t *testing.T) {
	suite.PodsMeetTheRestrictedStandard(t, deployDir)
}

func TestLeaseOfTheDeployedController(t *testing.T) {
	suite.Deploy(t, deployDir, nil)
	suite.LeaseHasPriority(t, "website-controller", "%s")
}
