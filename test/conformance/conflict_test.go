package conformance

import (
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/internal/testing/suite"
)

func TestForeignDeploymentIsNeverTouched(t *testing.T) {
	n := parallelNamespace(t)
	before := n.createBank()
	begin := suite.Now(t)

	n.foos.Create(newFoo("web", "bank", 3))
	n.foos.When("web", "is not Ready: "+nameTaken, notReadyBecause(nameTaken))
	n.Kubectl("annotate", "foo/web", "example.com/look=again")
	n.CatchUp()
	n.OnlyWarning(t, "web")
	if tries := n.count(begin, "create deployments") - 1; tries > 1 { // the last one is CatchUp's
		t.Errorf("the controller tried %d times to create what exists: a ResourceQuota counts each", tries)
	}

	after := n.deployments.Get("bank")
	if !reflect.DeepEqual(before.Spec, after.Spec) ||
		suite.Untouched(before) != suite.Untouched(after) {
		t.Errorf("the controller changed a Deployment that no Foo owns\nbefore: %s\nafter: %s",
			suite.Describe(before), suite.Describe(after))
	}

	n.Kubectl("delete", "deployment/bank")
	n.foos.When("web", "is Ready, because the name is free", isReady)
	n.deployments.When("bank", "has the 3 replicas of the Foo", hasReplicas(3))
	n.OnlyWarning(t, "web")
	n.fewRequests(begin)
}

func TestSecondFooWithADeploymentNameWaitsForTheFirst(t *testing.T) {
	n := parallelNamespace(t)
	n.createReadyFoo(newFoo("first", "web", 1))
	kept := n.deployments.When("web", "exists", exists)

	second := n.foos.Create(newFoo("second", "web", 2))
	n.foos.When("second", "is not Ready: "+nameTaken, notReadyBecause(nameTaken))
	n.OnlyWarning(t, "second")
	n.foos.When("first", "is still Ready", isReady)
	deployment := n.deployments.When("web", "has the 1 replica of the first Foo", hasReplicas(1))
	if deployment.UID != kept.UID {
		t.Errorf("the Deployment was deleted and created again: %s", suite.Describe(deployment))
	}

	n.Kubectl("delete", "foo/first")
	n.foos.When("second", "is Ready", isReady)
	deployment = n.deployments.When("web", "has the 2 replicas of the second Foo", hasReplicas(2))
	if !metav1.IsControlledBy(deployment, second) {
		t.Errorf("the Deployment has the owners %+v, want Foo second", deployment.OwnerReferences)
	}
}
