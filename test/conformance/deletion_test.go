package conformance

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		t.Errorf("expected that Deployment %s stays, without owners, but got %s",
			before.UID, describeDeployment(after))
	}
}
