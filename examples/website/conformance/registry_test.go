package conformance

import (
	"net/http"
	"testing"

	"example.com/sample-controller/internal/testing/suite"
)

// failures are the ways in which the registry fails.
var failures = map[string]http.HandlerFunc{"refuses": refuse, "is down": hangUp}

func TestRegistryThatFailsStopsNothingElse(t *testing.T) {
	t.Parallel()
	for name, failure := range failures {
		t.Run(name, func(t *testing.T) {
			n := parallelNamespace(t)
			begin := suite.Now(t)
			n.registryFails(failure)

			n.websites.Create(newWebsite("web", 1))

			n.websites.When("web", "is Ready and not registered",
				says("Available", "RegistrationFailed"))
			n.OnlyWarning(t, "web")
			n.registryFails(nil)
			n.websites.When("web", "is up", isUp)
			n.registryKnows("web", n.url("web"))
			n.fewRequests(begin)
		})
	}
}

func TestRegistryThatFailsHoldsADeletedWebsite(t *testing.T) {
	t.Parallel()
	for name, failure := range failures {
		t.Run(name, func(t *testing.T) {
			n := parallelNamespace(t)
			n.createUp(newWebsite("web", 1))
			begin := suite.Now(t)
			n.registryFails(failure)

			n.Kubectl("delete", "website/web", "--wait=false")

			n.websites.When("web", "says what holds it",
				says("WebsiteTerminating", "DeregistrationFailed"))
			n.registryKnows("web", n.url("web"))
			n.registryFails(nil)
			n.gone()
			n.registryKnows("web")
			n.fewRequests(begin)
		})
	}
}

func TestRegistryThatHasLostAWebsiteIsToldAgain(t *testing.T) {
	n := parallelNamespace(t)
	before := n.createUp(newWebsite("web", 1))

	n.registryForgets("web")

	n.registryKnows("web", n.url("web"))
	after := n.websites.Get("web")
	if before.ResourceVersion != after.ResourceVersion {
		t.Errorf("nothing has changed in the cluster, but the Website was written: %+v", after)
	}
}
