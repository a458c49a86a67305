package conformance

import (
	"testing"

	"example.com/sample-controller/internal/testing/suite"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

func TestFooDeletedInBackgroundTakesItsDeploymentAlong(t *testing.T) {
	n := parallelNamespace(t)
	n.createReadyFoo(newFoo("web", "web", 1))
	watch := n.watchDeployments()

	n.Kubectl("delete", "foo/web", "--cascade=background")

	n.foos.Gone("web")
	n.deployments.Gone("web")
	watch.nothingCreated()
}

func TestFooDeletedInForegroundTakesItsDeploymentAlong(t *testing.T) {
	n := parallelNamespace(t)
	n.createReadyFoo(newFoo("web", "web", 1))
	watch := n.watchDeployments()

	n.Kubectl("delete", "foo/web", "--cascade=foreground", "--wait=false")

	n.deployments.Gone("web")
	n.foos.Gone("web")
	watch.nothingCreated()
}

func TestFooDeletedAsOrphanLeavesItsDeployment(t *testing.T) {
	n := parallelNamespace(t)
	n.createReadyFoo(newFoo("web", "web", 1))
	before := n.deployments.When("web", "exists", exists)
	watch := n.watchDeployments()

	n.Kubectl("delete", "foo/web", "--cascade=orphan")

	n.foos.Gone("web")
	watch.nothingCreated()
	after := n.deployments.When("web", "exists", exists)
	if after.UID != before.UID || after.DeletionTimestamp != nil || len(after.OwnerReferences) > 0 {
		t.Errorf("want the Deployment with UID %s kept, without owners, but there is %s",
			before.UID, suite.Describe(after))
	}
}

// hasNothing reports whether the status says that the Foo is being deleted and has no Pods.
func hasNothing(foo *v1alpha1.Foo) bool {
	return notReadyBecause("FooTerminating")(foo) && foo.Status.ObservedGeneration == foo.Generation &&
		foo.Status.Replicas == 0 && foo.Status.AvailableReplicas == 0
}

func TestStatusOfAFooThatIsHeldStaysTrue(t *testing.T) {
	n := parallelNamespace(t)
	held := newFoo("web", "web", 2)
	held.Finalizers = []string{"example.com/held"} // until the test ends
	n.createReadyFoo(held)
	watch, begin := n.watchDeployments(), suite.Now(t)

	n.Kubectl("delete", "foo/web", "--wait=false")
	n.foos.When("web", "is being deleted, and still Ready with 2 Pods", func(foo *v1alpha1.Foo) bool {
		return foo.DeletionTimestamp != nil && isReady(foo) && foo.Status.AvailableReplicas == 2
	})
	n.Kubectl("delete", "deployment/web", "--wait=false")
	n.foos.When("web", "is not Ready: FooTerminating, without Pods", hasNothing)
	n.Kubectl("scale", "foo/web", "--replicas=5")
	n.foos.When("web", "says the same about the newest spec", hasNothing)

	watch.nothingCreated()
	n.fewRequests(begin)
}
