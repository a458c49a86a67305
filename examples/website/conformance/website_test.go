package conformance

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/internal/testing/suite"
)

func TestNewWebsiteIsServedAndRegistered(t *testing.T) {
	n := parallelNamespace(t)

	website := n.createUp(newWebsite("web", 2))

	for _, c := range children {
		owner := metav1.GetControllerOf(c.of(n).Get("web"))
		if owner == nil || owner.UID != website.UID || !*owner.BlockOwnerDeletion {
			t.Errorf("the %s has the owner %+v, want its Website, with blockOwnerDeletion", c.kind, owner)
		}
	}
	url := n.url("web")
	status := website.Status
	selector := "website.example.com/website-uid=" + string(website.UID)
	if status.URL != url || status.RegisteredURL != url || status.ReadyReplicas != 2 ||
		status.Replicas != 2 || status.Selector != selector {
		t.Errorf("got status %+v, want 2 ready replicas of %s at %s", status, selector, url)
	}
	n.registryKnows("web", url)
}

func TestExampleWebsiteWorks(t *testing.T) {
	n := parallelNamespace(t)

	n.Kubectl("apply", "-f", "../artifacts/example-website.yaml")

	n.Kubectl("wait", "website/example-website", "--for=condition=Ready",
		"--timeout="+suite.Patience.String())
	n.websites.When("example-website", "is up", isUp)
}

func TestWebsiteCanBeScaled(t *testing.T) {
	n := parallelNamespace(t)
	n.createUp(newWebsite("web", 1))

	n.Kubectl("scale", "website/web", "--replicas=3")

	if got := n.websites.When("web", "is up again", isUp).Status.ReadyReplicas; got != 3 {
		t.Errorf("got %d ready replicas, want 3", got)
	}
}

func TestPodsMeetTheRestrictedStandard(t *testing.T) {
	n := parallelNamespace(t)
	n.Kubectl("label", "namespace", n.Name, "pod-security.kubernetes.io/enforce=restricted")

	n.createUp(newWebsite("web", 1))

	// Their admission proves something only if other Pods are refused.
	_, err := n.TryKubectl("", "run", "other", "--image=example.com/other")
	if err == nil {
		t.Error("the API server has admitted any Pod")
	}
}
