package conformance

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const managedBy = "app.kubernetes.io/managed-by"

func TestFooWithTheLongestNameWorks(t *testing.T) {
	behaviour(t, 11)
	n := parallelNamespace(t)
	name := strings.Repeat("a", 253)

	n.createReadyFoo(newFoo(name, "web", 1))

	n.deploymentWhen("web", "has 1 replica", hasReplicas(1))
}

func TestLongestDeploymentNameWorks(t *testing.T) {
	behaviour(t, 11)
	n := parallelNamespace(t)
	name := strings.Repeat("a", 253)

	n.createReadyFoo(newFoo("web", name, 1))

	n.deploymentWhen(name, "has 1 replica", hasReplicas(1))
}

func TestRemovedManagedByLabelIsPutBack(t *testing.T) {
	behaviour(t, 15)
	n := parallelNamespace(t)
	n.createReadyFoo(newFoo("web", "web", 1))
	before := n.deploymentWhen("web", "exists", exists)
	label := before.Labels[managedBy]
	labelled := func(deployment *appsv1.Deployment) bool {
		return deployment.Labels[managedBy] == label
	}
	if label == "" {
		t.Fatalf("the Deployment lacks the label %s: %v", managedBy, before.Labels)
	}
	begin := now(t)

	n.kubectl("label", "deployment/web", managedBy+"-")

	after := n.deploymentWhen("web", "has the label again", labelled)
	if after.UID != before.UID {
		t.Errorf("the Deployment was deleted and created again: %s", describeDeployment(after))
	}
	n.kubectl("scale", "foo/web", "--replicas=2")
	n.fooWhen("web", "is Ready", isReady)
	n.fewRequests(begin)
}

func TestDeploymentThatLostItsOwnerIsLeftAlone(t *testing.T) {
	behaviour(t, 15)
	n := parallelNamespace(t)
	n.createReadyFoo(newFoo("web", "web", 1))
	begin := now(t)

	n.changeDeployment("web", func(deployment *appsv1.Deployment) {
		deployment.OwnerReferences = nil
	})
	n.fooWhen("web", "is not Ready: "+nameTaken, notReadyBecause(nameTaken))
	n.kubectl("scale", "foo/web", "--replicas=5")
	n.fooWhen("web", "is not Ready again: "+nameTaken, notReadyBecause(nameTaken))
	n.catchUp()

	deployment := n.deploymentWhen("web", "has 1 replica", hasReplicas(1))
	if len(deployment.OwnerReferences) > 0 {
		t.Errorf("the Deployment has the owners %+v, want none", deployment.OwnerReferences)
	}
	n.fewRequests(begin)
}

func TestDeletedNamespaceGoesAndCostsFewRequests(t *testing.T) {
	behaviour(t, 15)
	n := parallelNamespace(t)
	n.createReadyFoo(newFoo("web", "web", 1))
	begin := now(t)

	n.kubectl("delete", "namespace", n.name, "--wait=false")

	namespaces := kubeClient.CoreV1().Namespaces()
	eventually(t, "the namespace is gone", func() (bool, string) {
		namespace, err := namespaces.Get(t.Context(), n.name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), "its phase is " + string(namespace.Status.Phase)
	})
	gone := now(t)
	other := newNamespace(t)
	other.catchUp()
	n.fewRequests(begin)
	if late := shared.requests(t, gone, n.in); len(late) > 0 {
		t.Errorf("the namespace is gone, but the controller still requests: %v", late)
	}
}

func TestPausedDeploymentIsReportedWhenItIsBehind(t *testing.T) {
	behaviour(t, 15)
	n := parallelNamespace(t)
	n.createReadyFoo(newFoo("web", "web", 1))
	begin := now(t)

	n.kubectl("rollout", "pause", "deployment/web")
	n.catchUp()
	n.fooWhen("web", "is still Ready", isReady)

	n.changeDeployment("web", func(deployment *appsv1.Deployment) {
		deployment.Spec.Template.Annotations = map[string]string{"example.com/new": "Pods"}
	})
	n.fooWhen("web", "is not Ready: DeploymentPaused", notReadyBecause("DeploymentPaused"))

	n.kubectl("rollout", "resume", "deployment/web")
	n.fooWhen("web", "is Ready again", isReady)
	n.fewRequests(begin)
}

func TestLimitsBelowTheRequestsAreReported(t *testing.T) {
	behaviour(t, 15)
	n := parallelNamespace(t)
	n.createReadyFoo(newFoo("web", "web", 1))
	begin := now(t)

	n.kubectl("set", "resources", "deployment/web", "--limits=memory=8Mi", "--requests=memory=8Mi")
	n.fooWhen("web", "is not Ready: DeploymentRejected", notReadyBecause("DeploymentRejected"))
	n.kubectl("scale", "foo/web", "--replicas=2")
	n.fooWhen("web", "is not Ready again: DeploymentRejected", notReadyBecause("DeploymentRejected"))
	n.catchUp()
	n.onlyWarning("web")
	n.deploymentWhen("web", "has 1 replica", hasReplicas(1))
	n.fewRequests(begin)

	n.kubectl("set", "resources", "deployment/web", "--limits=memory=32Mi")
	n.fooWhen("web", "is Ready again", isReady)
	n.deploymentWhen("web", "has 2 replicas", hasReplicas(2))
}
