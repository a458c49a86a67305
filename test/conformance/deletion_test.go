package conformance

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// fooGone waits until there is no Foo of that name.
func (n *namespace) fooGone(name string) {
	n.t.Helper()
	eventually(n.t, "Foo "+name+" is gone", func() (bool, string) {
		foo, err := n.foos.Get(n.t.Context(), name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), describeFoo(foo)
	})
}

func TestFooDeletedInBackgroundTakesItsDeploymentAlong(t *testing.T) {
	behaviour(t, 7)
	n := parallelNamespace(t)
	n.createReadyFoo(newFoo("web", "web", 1))
	watch := n.watchDeployments()

	n.kubectl("delete", "foo/web", "--cascade=background")

	n.fooGone("web")
	n.deploymentGone("web")
	watch.nothingCreated()
}

func TestFooDeletedInForegroundTakesItsDeploymentAlong(t *testing.T) {
	behaviour(t, 7)
	n := parallelNamespace(t)
	n.createReadyFoo(newFoo("web", "web", 1))
	watch := n.watchDeployments()

	n.kubectl("delete", "foo/web", "--cascade=foreground", "--wait=false")

	n.deploymentGone("web")
	n.fooGone("web")
	watch.nothingCreated()
}

func TestFooDeletedAsOrphanLeavesItsDeployment(t *testing.T) {
	behaviour(t, 7)
	n := parallelNamespace(t)
	n.createReadyFoo(newFoo("web", "web", 1))
	before := n.deploymentWhen("web", "exists", exists)
	watch := n.watchDeployments()

	n.kubectl("delete", "foo/web", "--cascade=orphan")

	n.fooGone("web")
	watch.nothingCreated()
	after := n.deploymentWhen("web", "exists", exists)
	if after.UID != before.UID || after.DeletionTimestamp != nil || len(after.OwnerReferences) > 0 {
		t.Errorf("want the Deployment with UID %s kept, without owners, but there is %s",
			before.UID, describeDeployment(after))
	}
}

// createHeldFoo creates a Foo and waits until it is Ready. A finalizer holds the Foo until the test
// ends.
func (n *namespace) createHeldFoo(replicas int32) {
	n.t.Helper()
	foo := newFoo("web", "web", replicas)
	foo.Finalizers = []string{"example.com/held"}
	n.createReadyFoo(foo)
	n.t.Cleanup(func() {
		n.kubectl("patch", "foo/web", "--type=merge", `--patch={"metadata":{"finalizers":null}}`)
		n.kubectl("wait", "--for=delete", "foo/web", "--timeout="+patience.String())
	})
}

// hasNothing reports whether the status says that the Foo is being deleted and has no Pods.
func hasNothing(foo *v1alpha1.Foo) bool {
	return notReadyBecause("FooTerminating")(foo) && foo.Status.ObservedGeneration == foo.Generation &&
		foo.Status.Replicas == 0 && foo.Status.AvailableReplicas == 0
}

func TestStatusOfAFooThatIsHeldStaysTrue(t *testing.T) {
	behaviour(t, 7)
	n := parallelNamespace(t)
	n.createHeldFoo(2)
	watch, begin := n.watchDeployments(), now(t)

	n.kubectl("delete", "foo/web", "--wait=false")
	n.fooWhen("web", "is being deleted, and still Ready with 2 Pods", func(foo *v1alpha1.Foo) bool {
		return foo.DeletionTimestamp != nil && isReady(foo) && foo.Status.AvailableReplicas == 2
	})
	n.kubectl("delete", "deployment/web", "--wait=false")
	n.fooWhen("web", "is not Ready: FooTerminating, without Pods", hasNothing)
	n.kubectl("scale", "foo/web", "--replicas=5")
	n.fooWhen("web", "says the same about the newest spec", hasNothing)

	watch.nothingCreated()
	n.fewRequests(begin)
}

func TestStatusOfAFooThatIsHeldStaysTrueInForeground(t *testing.T) {
	behaviour(t, 7)
	n := parallelNamespace(t)
	n.createHeldFoo(1)
	watch := n.watchDeployments()

	n.kubectl("delete", "foo/web", "--cascade=foreground", "--wait=false")

	n.deploymentGone("web")
	n.fooWhen("web", "is not Ready: FooTerminating, without Pods", hasNothing)
	watch.nothingCreated()
}
