package conformance

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/sample-controller/internal/testing/suite"
)

const managedBy = "app.kubernetes.io/managed-by"

func TestDeletedChildComesBack(t *testing.T) {
	forEachChild(t, func(n *namespace, c child) {
		n.createUp(newWebsite("web", 1))
		before := c.of(n).Get("web")

		n.Kubectl("delete", c.resource.Resource, "web", "--wait=false")

		c.of(n).When("web", "is created again", func(object *unstructured.Unstructured) bool {
			return object.GetUID() != before.GetUID()
		})
		n.websites.When("web", "is up again", isUp)
	})
}

func TestChangedChildIsRepaired(t *testing.T) {
	forEachChild(t, func(n *namespace, c child) {
		n.createUp(newWebsite("web", 1))
		before, begin := c.of(n).Get("web"), suite.Now(n.T)

		n.Kubectl("patch", c.resource.Resource, "web", "--patch", c.change)

		after := c.of(n).When("web", "is repaired", sameAs(before))
		if suite.Untouched(before) == suite.Untouched(after) {
			n.T.Error("nobody has changed it")
		}
		n.websites.When("web", "is up again", isUp)
		n.fewRequests(begin)
	})
}

func TestRemovedManagedByLabelIsPutBack(t *testing.T) {
	forEachChild(t, func(n *namespace, c child) {
		n.createUp(newWebsite("web", 1))
		before, begin := c.of(n).Get("web"), suite.Now(n.T)
		if before.GetLabels()[managedBy] == "" {
			n.T.Fatalf("the %s lacks the label %s: %v", c.kind, managedBy, before.GetLabels())
		}

		n.Kubectl("label", c.resource.Resource, "web", managedBy+"-")

		after := c.of(n).When("web", "has the label again", sameAs(before))
		if after.GetUID() != before.GetUID() {
			n.T.Errorf("the %s was deleted and created again", c.kind)
		}
		n.fewRequests(begin)
	})
}

func TestForeignObjectIsNeverTouched(t *testing.T) {
	forEachChild(t, func(n *namespace, c child) {
		taken := n.take(c, "web")
		if c.kind == "Deployment" { // its controller writes to it, too
			n.Kubectl("rollout", "status", "deployment/web", "--timeout="+suite.Patience.String())
		}
		before, begin := c.of(n).Get("web"), suite.Now(n.T)

		n.websites.Create(newWebsite("web", 1))
		n.websites.When("web", "is not Ready: "+taken, says(taken))
		n.Kubectl("annotate", "website/web", "example.com/look=again")
		n.CatchUp()
		n.OnlyWarning(n.T, "web")
		after := c.of(n).Get("web")
		if !sameAs(before)(after) || suite.Untouched(before) != suite.Untouched(after) {
			n.T.Errorf("the controller changed a %s that no Website owns\nbefore: %v\nafter: %v", c.kind,
				before, after)
		}

		n.Kubectl("delete", c.resource.Resource, "web")
		n.websites.When("web", "is up, because the name is free", isUp)
		n.OnlyWarning(n.T, "web")
		n.fewRequests(begin)
	})
}
