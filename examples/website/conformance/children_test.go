package conformance

import (
	"testing"

	"example.com/sample-controller/internal/testing/suite"
)

const managedBy = "app.kubernetes.io/managed-by"

func TestChangedChildIsRepaired(t *testing.T) {
	t.Parallel()
	for _, c := range children {
		t.Run(c.kind, func(t *testing.T) {
			n := parallelNamespace(t)
			n.createUp(newWebsite("web", 1))
			before, begin := c.of(n).Get("web"), suite.Now(t)

			n.Kubectl("patch", c.resource.Resource, "web", "--patch", c.change)

			after := c.of(n).When("web", "is repaired", sameAs(before))
			if suite.Untouched(before) == suite.Untouched(after) {
				t.Error("nobody has changed it")
			}
			n.websites.When("web", "is up again", isUp)
			n.fewRequests(begin)
		})
	}
}
