package conformance

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/sample-controller/internal/testing/suite"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

func TestFooWithTheLongestNameWorks(t *testing.T) {
	n := parallelNamespace(t)
	longest := strings.Repeat("a", 253)

	n.createReadyFoo(newFoo(longest, "web", 1))
	n.createReadyFoo(newFoo("web", longest, 1))
}

func TestRemovedManagedByLabelIsPutBack(t *testing.T) {
	n := parallelNamespace(t)
	n.createReadyFoo(newFoo("web", "web", 1))
	before := n.deployments.When("web", "exists", exists)
	label := before.Labels[managedBy]
	labelled := func(deployment *appsv1.Deployment) bool {
		return deployment.Labels[managedBy] == label
	}
	if label == "" {
		t.Fatalf("the Deployment lacks the label %s: %v", managedBy, before.Labels)
	}
	begin := suite.Now(t)

	n.Kubectl("label", "deployment/web", managedBy+"-")

	after := n.deployments.When("web", "has the label again", labelled)
	if after.UID != before.UID {
		t.Errorf("the Deployment was deleted and created again: %s", suite.Describe(after))
	}
	n.Kubectl("scale", "foo/web", "--replicas=2")
	n.foos.When("web", "is Ready", isReady)
	n.fewRequests(begin)
}

func TestDeploymentThatLostItsOwnerIsLeftAlone(t *testing.T) {
	n := parallelNamespace(t)
	n.createReadyFoo(newFoo("web", "web", 1))
	begin := suite.Now(t)

	n.deployments.Change("web", func(deployment *appsv1.Deployment) {
		deployment.OwnerReferences = nil
	})
	n.foos.When("web", "is not Ready: "+nameTaken, notReadyBecause(nameTaken))
	n.Kubectl("scale", "foo/web", "--replicas=5")
	n.foos.When("web", "is not Ready again: "+nameTaken, notReadyBecause(nameTaken))
	n.CatchUp()

	deployment := n.deployments.When("web", "has 1 replica", hasReplicas(1))
	if len(deployment.OwnerReferences) > 0 {
		t.Errorf("the Deployment has the owners %+v, want none", deployment.OwnerReferences)
	}
	n.fewRequests(begin)
}

func TestDeletedNamespaceGoesAndCostsFewRequests(t *testing.T) {
	n := parallelNamespace(t)
	n.createReadyFoo(newFoo("web", "web", 1))
	begin := suite.Now(t)

	n.Kubectl("delete", "namespace", n.Name, "--timeout="+suite.Patience.String())

	gone := suite.Now(t)
	other := newNamespace(t)
	other.CatchUp()
	n.fewRequests(begin)
	if late := n.Requests(gone); len(late) > 0 {
		t.Errorf("the namespace is gone, but the controller still requests: %v", late)
	}
}

func TestPausedDeploymentIsReportedWhenItIsBehind(t *testing.T) {
	n := parallelNamespace(t)
	n.createReadyFoo(newFoo("web", "web", 1))
	begin := suite.Now(t)

	n.Kubectl("rollout", "pause", "deployment/web")
	n.CatchUp()
	n.foos.When("web", "is still Ready", isReady)

	n.deployments.Change("web", func(deployment *appsv1.Deployment) {
		deployment.Spec.Template.Annotations = map[string]string{"example.com/new": "Pods"}
	})
	n.foos.When("web", "is not Ready: DeploymentPaused", notReadyBecause("DeploymentPaused"))

	n.Kubectl("rollout", "resume", "deployment/web")
	n.foos.When("web", "is Ready again", isReady)
	n.fewRequests(begin)
}

func TestLimitsBelowTheRequestsAreReported(t *testing.T) {
	n := parallelNamespace(t)
	n.createReadyFoo(newFoo("web", "web", 1))
	begin := suite.Now(t)

	n.Kubectl("set", "resources", "deployment/web", "--limits=memory=8Mi", "--requests=memory=8Mi")
	n.foos.When("web", "is not Ready: DeploymentRejected", notReadyBecause("DeploymentRejected"))
	n.Kubectl("scale", "foo/web", "--replicas=2")
	n.foos.When("web", "is not Ready again: DeploymentRejected", notReadyBecause("DeploymentRejected"))
	n.CatchUp()
	n.OnlyWarning(t, "web")
	n.deployments.When("web", "has 1 replica", hasReplicas(1))
	n.fewRequests(begin)

	n.Kubectl("set", "resources", "deployment/web", "--limits=memory=32Mi")
	n.foos.When("web", "is Ready again", isReady)
	n.deployments.When("web", "has 2 replicas", hasReplicas(2))
}

func TestRenamedDeploymentIsReplacedWhenTheNewOneIsAvailable(t *testing.T) {
	n := parallelNamespace(t)
	n.createReadyFoo(newFoo("web", "old", 2))
	deployments := n.watchDeployments()

	n.foos.Change("web", func(foo *v1alpha1.Foo) { foo.Spec.DeploymentName = "new" })

	available := int32(0) // of the new Deployment
	see := func(event watch.EventType, deployment *appsv1.Deployment) bool {
		if deployment.Name == "new" {
			available = deployment.Status.AvailableReplicas
		}
		goes := event == watch.Deleted || deployment.DeletionTimestamp != nil
		if deployment.Name == "old" && goes && available != 2 {
			t.Errorf("the old Deployment was deleted when %d of 2 new Pods were available", available)
		}
		return event == watch.Deleted
	}
	deployments.until("the old Deployment is deleted", see)
	n.foos.When("web", "is Ready", isReady)
	n.deployments.When("new", "has 2 replicas", hasReplicas(2))
	n.deployments.Gone("old")
}

func TestOldDeploymentStaysWhileTheNewOneIsNotAvailable(t *testing.T) {
	n := parallelNamespace(t)
	n.createReadyFoo(newFoo("web", "old", 1))
	n.createQuotas("pods=1") // no room for a Pod of the new Deployment

	n.foos.Change("web", func(foo *v1alpha1.Foo) { foo.Spec.DeploymentName = "new" })
	n.deployments.When("new", "exists", exists)
	n.foos.When("web", "is not Ready", func(foo *v1alpha1.Foo) bool {
		ready := readyCondition(foo)
		return ready.Status == metav1.ConditionFalse && ready.ObservedGeneration == foo.Generation
	})
	n.CatchUp()

	old := n.deployments.When("old", "exists", exists)
	if old.DeletionTimestamp != nil || old.Status.AvailableReplicas != 1 {
		t.Errorf("want the old Deployment kept and available, got %s", suite.Describe(old))
	}
}
