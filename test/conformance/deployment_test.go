package conformance

import (
	"reflect"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/suite"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

func hasReplicas(replicas int32) func(*appsv1.Deployment) bool {
	return func(deployment *appsv1.Deployment) bool { return *deployment.Spec.Replicas == replicas }
}

func TestNewFooGetsItsDeployment(t *testing.T) {
	n := parallelNamespace(t)
	foo := n.foos.Create(newFoo("example", "example-web", 3))

	deployment := n.deployments.When("example-web", "exists", exists)

	if *deployment.Spec.Replicas != 3 {
		t.Errorf("the Deployment has %d replicas, want the Foo's 3", *deployment.Spec.Replicas)
	}
	owners := []metav1.OwnerReference{{
		APIVersion: "samplecontroller.k8s.io/v1alpha1", Kind: "Foo", Name: "example", UID: foo.UID,
		Controller: new(true), BlockOwnerDeletion: new(true),
	}}
	if !reflect.DeepEqual(deployment.OwnerReferences, owners) {
		t.Errorf("the Deployment has the owners %+v, want its Foo, with controller and "+
			"blockOwnerDeletion: %+v", deployment.OwnerReferences, owners)
	}
}

func TestScaledFooScalesItsDeployment(t *testing.T) {
	n := parallelNamespace(t)
	n.foos.Create(newFoo("web", "web", 1))
	n.deployments.When("web", "has 1 replica", hasReplicas(1))

	n.foos.Change("web", func(foo *v1alpha1.Foo) { foo.Spec.Replicas = new(int32(3)) })
	n.deployments.When("web", "has 3 replicas", hasReplicas(3))

	n.Kubectl("scale", "foo/web", "--replicas=5")
	n.deployments.When("web", "has 5 replicas", hasReplicas(5))

	n.Kubectl("scale", "foo/web", "--replicas=0")
	n.deployments.When("web", "has no replicas", hasReplicas(0))
}

func TestChangedImageAndCountAreRepaired(t *testing.T) {
	n := parallelNamespace(t)
	n.createReadyFoo(newFoo("web", "web", 2))
	image := n.deployments.When("web", "exists", exists).Spec.Template.Spec.Containers[0].Image

	n.deployments.Change("web", func(deployment *appsv1.Deployment) {
		deployment.Spec.Template.Spec.Containers[0].Image = "example.com/other"
	})
	n.deployments.When("web", "has the image "+image, func(deployment *appsv1.Deployment) bool {
		return deployment.Spec.Template.Spec.Containers[0].Image == image
	})

	n.Kubectl("scale", "deployment/web", "--replicas=7")
	n.deployments.When("web", "has 2 replicas", hasReplicas(2))
}

func TestWhatOthersWroteToTheDeploymentSurvives(t *testing.T) {
	const restartedAt = "kubectl.kubernetes.io/restartedAt"
	n := parallelNamespace(t)
	n.createReadyFoo(newFoo("web", "web", 1))

	n.Kubectl("label", "deployment/web", "team=blue")
	n.Kubectl("annotate", "deployment/web", "example.com/note=keep")
	n.Kubectl("rollout", "restart", "deployment/web")
	restarted := n.deployments.When("web", "exists", exists).Spec.Template.Annotations[restartedAt]
	n.Kubectl("rollout", "status", "deployment/web", "--timeout="+suite.Patience.String())
	n.Kubectl("scale", "foo/web", "--replicas=3")
	n.foos.When("web", "is Ready again", isReady)

	deployment := n.deployments.When("web", "has 3 replicas", hasReplicas(3))
	if got := deployment.Labels["team"]; got != "blue" {
		t.Errorf("the label team was changed to %q, want it left at blue", got)
	}
	if got := deployment.Annotations["example.com/note"]; got != "keep" {
		t.Errorf("the annotation example.com/note was changed to %q, want it left at keep", got)
	}
	if got := deployment.Spec.Template.Annotations[restartedAt]; got == "" || got != restarted {
		t.Errorf("the Pods have the annotation %s=%q, want %q", restartedAt, got, restarted)
	}
}

func TestDeletedDeploymentComesBack(t *testing.T) {
	n := parallelNamespace(t)
	n.createReadyFoo(newFoo("web", "web", 2))
	// This long after its creation, only the deletion makes the controller look at it.
	deleted := n.deployments.When("web", "is 3 s old", func(deployment *appsv1.Deployment) bool {
		return time.Since(deployment.CreationTimestamp.Time) > 3*time.Second
	})

	n.Kubectl("delete", "deployment/web", "--wait=false")

	replaced := func(deployment *appsv1.Deployment) bool { return deployment.UID != deleted.UID }
	n.deployments.When("web", "is created again", replaced)
	n.deployments.When("web", "has 2 replicas", hasReplicas(2))
	n.foos.When("web", "is Ready again", isReady)
}

func TestStatusSaysWhatTheDeploymentHas(t *testing.T) {
	n := parallelNamespace(t)
	n.foos.Create(newFoo("web", "web", 2))

	foo := n.foos.When("web", "is Ready", isReady)

	if foo.Status.Replicas != 2 || foo.Status.AvailableReplicas != 2 {
		t.Errorf("the Ready Foo has %d replicas, %d available, want 2 of each",
			foo.Status.Replicas, foo.Status.AvailableReplicas)
	}
	if ready := readyCondition(foo); ready.Reason == "" || ready.Message == "" {
		t.Errorf("Ready has reason %q and message %q, want both set", ready.Reason, ready.Message)
	}
	selector := metav1.ListOptions{LabelSelector: foo.Status.Selector}
	pods, err := suite.Kube.CoreV1().Pods(n.Name).List(t.Context(), selector)
	if err != nil || len(pods.Items) != 2 {
		t.Errorf("status.selector finds %d Pods (error %v), want 2", len(pods.Items), err)
	}
}

func TestReadyIsNeverClaimedTooEarly(t *testing.T) {
	n := parallelNamespace(t)
	created := n.foos.Create(newFoo("web", "web", 2))
	watcher := must.Get(fooClient(n.Namespace).Watch(t.Context(), metav1.ListOptions{
		FieldSelector: "metadata.name=web", ResourceVersion: created.ResourceVersion,
	}))(t)
	defer watcher.Stop()

	for _, replicas := range []int32{2, 5, 1, 0} {
		n.foos.Change("web", func(foo *v1alpha1.Foo) { foo.Spec.Replicas = &replicas })
		n.Kubectl("wait", "foo/web", "--for=condition=Ready", "--timeout="+suite.Patience.String())
	}

	for event := range watcher.ResultChan() { // all of them have been sent by now
		foo, ok := event.Object.(*v1alpha1.Foo)
		if !ok {
			t.Fatalf("watching Foos: %+v", event.Object)
		}
		replicas, status := *foo.Spec.Replicas, foo.Status
		if isReady(foo) && (status.Replicas != replicas || status.AvailableReplicas != replicas) {
			t.Errorf("asked for %d replicas, and Ready was True too early: %s", replicas,
				suite.Describe(foo))
		}
		if isReady(foo) && status.Replicas == 0 {
			return // that was the last change
		}
	}
	t.Error("the watch of Foos ended before the last change")
}

func TestFooIsNotReadyWhileItsDeploymentIsNot(t *testing.T) {
	n := parallelNamespace(t)
	n.createReadyFoo(newFoo("web", "web", 1))

	n.deployments.Change("web", func(deployment *appsv1.Deployment) {
		deployment.Spec.Template.Spec.NodeSelector = map[string]string{"no-such": "node"}
	})
	foo := n.foos.When("web", "is not Ready", func(foo *v1alpha1.Foo) bool {
		return readyCondition(foo).Status == metav1.ConditionFalse
	})
	if ready := readyCondition(foo); ready.Reason == "" || ready.Message == "" {
		t.Errorf("Ready has reason %q and message %q, want both set", ready.Reason, ready.Message)
	}

	n.deployments.Change("web", func(deployment *appsv1.Deployment) {
		deployment.Spec.Template.Spec.NodeSelector = nil
	})
	n.foos.When("web", "is Ready again", isReady)
}
