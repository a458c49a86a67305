package conformance

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/internal/testing/suite"
	"example.com/sample-controller/internal/testing/suite/audit"
)

// nothingCreated lets the controller catch up, and fails the test if it has created a child of the
// Website since begin.
func (n *namespace) nothingCreated(begin audit.Mark) {
	n.T.Helper()
	n.CatchUp()
	for _, r := range n.Requests(begin) {
		if r.Verb == "create" && r.ObjectRef.Name == "web" {
			n.T.Errorf("the Website is being deleted, but the controller requests %v", r)
		}
	}
}

func TestDeletedWebsiteIsDeregisteredAndTakesItsChildrenAlong(t *testing.T) {
	t.Parallel()
	for _, cascade := range []string{"background", "foreground"} {
		t.Run(cascade, func(t *testing.T) {
			n := parallelNamespace(t)
			n.createUp(newWebsite("web", 1))
			n.registryKnows("web", n.url("web"))
			begin := suite.Now(t)

			n.Kubectl("delete", "website/web", "--cascade="+cascade, "--wait=false")

			n.websites.Gone("web")
			for _, c := range children {
				c.of(n).Gone("web")
			}
			n.registryKnows("web")
			n.nothingCreated(begin)
			n.fewRequests(begin)
		})
	}
}

func TestDeletedNamespaceGoes(t *testing.T) {
	n := parallelNamespace(t)
	n.createUp(newWebsite("web", 1))
	begin := suite.Now(t)

	n.Kubectl("delete", "namespace", n.Name, "--wait=false")

	suite.Eventually(t, "the namespace is gone", func() (bool, string) {
		namespace, err := suite.Kube.CoreV1().Namespaces().Get(t.Context(), n.Name,
			metav1.GetOptions{})
		return apierrors.IsNotFound(err), "its phase is " + string(namespace.Status.Phase)
	})
	n.registryKnows("web")
	n.fewRequests(begin)
}
