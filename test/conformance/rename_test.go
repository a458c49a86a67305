package conformance

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/sample-controller/internal/testing/suite"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

func TestRenamedDeploymentIsReplacedWhenTheNewOneIsAvailable(t *testing.T) {
	behaviour(t, 8)
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
	behaviour(t, 8)
	n := parallelNamespace(t)
	n.createReadyFoo(newFoo("web", "old", 1))
	n.createQuota("1") // no room for a Pod of the new Deployment

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
