package conformance

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/sample-controller/examples/website/pkg/apis/website/v1alpha1"
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
	if status.URL != url || status.RegisteredURL != url || status.ReadyReplicas != 2 {
		t.Errorf("got status %+v, want 2 ready replicas at %s", status, url)
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

func TestChangedContentReplacesThePods(t *testing.T) {
	n := parallelNamespace(t)
	n.createUp(newWebsite("web", 2))

	n.websites.Change("web", func(website *v1alpha1.Website) { website.Spec.Content = "Bye" })

	n.websites.When("web", "is up again", isUp)
	configMap, err := suite.Kube.CoreV1().ConfigMaps(n.Name).Get(t.Context(), "web",
		metav1.GetOptions{})
	if err != nil || configMap.Data["index.html"] != "Bye" {
		t.Errorf("the ConfigMap has %q (error %v), want the new content", configMap.Data, err)
	}
	replicaSets, err := suite.Kube.AppsV1().ReplicaSets(n.Name).List(t.Context(),
		metav1.ListOptions{})
	if err != nil || len(replicaSets.Items) != 2 {
		t.Errorf("there are %d ReplicaSets (error %v), want 2", len(replicaSets.Items), err)
	}
}

func TestChangedPortIsServedAndRegistered(t *testing.T) {
	n := parallelNamespace(t)
	n.createUp(newWebsite("web", 1))

	n.websites.Change("web", func(website *v1alpha1.Website) { website.Spec.Port = 8000 })

	url := strings.Replace(n.url("web"), ":80", ":8000", 1)
	status := n.websites.When("web", "is up again", isUp).Status
	if status.URL != url || status.RegisteredURL != url {
		t.Errorf("got status %+v, want %s", status, url)
	}
	n.registryKnows("web", url)
}

func TestImageAndReplicasAreThoseOfTheWebsite(t *testing.T) {
	n := parallelNamespace(t)
	n.createUp(newWebsite("web", 1))

	n.websites.Change("web", func(website *v1alpha1.Website) { website.Spec.Image = "nginx:2" })
	n.websites.When("web", "is up with another image", isUp)
	image := n.Kubectl("get", "deployment/web",
		"--output=jsonpath={.spec.template.spec.containers[*].image}")
	if image != "nginx:2" {
		t.Errorf("the Deployment has the image %q, want nginx:2", image)
	}
	for _, replicas := range []string{"3", "0"} {
		n.Kubectl("scale", "website/web", "--replicas="+replicas)
		n.websites.When("web", "is up with "+replicas+" replicas", isUp)
		got := n.Kubectl("get", "deployment/web", "--output=jsonpath={.status.replicas}")
		if got != replicas && (replicas != "0" || got != "") {
			t.Errorf("the Deployment has %s replicas, want %s", got, replicas)
		}
	}
}

func TestWebsiteIsNotReadyWhileItsPodsAreNot(t *testing.T) {
	n := parallelNamespace(t)
	n.createUp(newWebsite("web", 1))
	onlyOn := func(node string) {
		n.Kubectl("patch", "deployment/web", "--patch",
			`{"spec": {"template": {"spec": {"nodeSelector": {"no-such": `+node+`}}}}}`)
	}

	onlyOn(`"node"`)
	n.websites.When("web", "is not Ready: Progressing", says("Progressing", "Registered"))

	onlyOn("null")
	n.websites.When("web", "is up again", isUp)
}

func TestWhatOthersWroteSurvives(t *testing.T) {
	n := parallelNamespace(t)
	n.createUp(newWebsite("web", 1))
	n.Kubectl("label", "configmap/web", "service/web", "deployment/web", "team=blue")
	n.Kubectl("rollout", "restart", "deployment/web")

	n.websites.Change("web", func(website *v1alpha1.Website) { website.Spec.Content = "Bye" })

	n.websites.When("web", "is up again", isUp)
	for _, c := range children {
		object := c.of(n).Get("web")
		if got := object.GetLabels()["team"]; got != "blue" {
			t.Errorf("the label team of the %s was changed to %q, want it left at blue", c.kind, got)
		}
		if c.kind == "Deployment" && restartedAt(object) == "" {
			t.Error("the Pods have lost the annotation of kubectl rollout restart")
		}
	}
}

// restartedAt returns the annotation of kubectl rollout restart.
func restartedAt(deployment *unstructured.Unstructured) string {
	at, _, _ := unstructured.NestedString(deployment.Object, "spec", "template", "metadata",
		"annotations", "kubectl.kubernetes.io/restartedAt")
	return at
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
