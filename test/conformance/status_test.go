package conformance

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/suite"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

func TestStatusSaysWhatTheDeploymentHas(t *testing.T) {
	behaviour(t, 2)
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

func TestKubectlWaitReturnsWhenTheNewestSpecIsReady(t *testing.T) {
	behaviour(t, 2)
	n := parallelNamespace(t)
	n.foos.Create(newFoo("web", "web", 1))

	for _, replicas := range []int32{2, 5, 1} {
		n.Kubectl("scale", "foo/web", fmt.Sprintf("--replicas=%d", replicas))
		n.Kubectl("wait", "foo/web", "--for=condition=Ready", "--timeout="+suite.Patience.String())

		if foo := n.foos.Get("web"); foo.Status.AvailableReplicas != replicas {
			t.Errorf("scaled to %d, and kubectl wait returned too early: %s", replicas, suite.Describe(foo))
		}
	}
}

func TestReadyIsNeverClaimedTooEarly(t *testing.T) {
	behaviour(t, 2)
	n := parallelNamespace(t)
	created := n.foos.Create(newFoo("web", "web", 2))
	watcher := must.Get(fooClient(n.Namespace).Watch(t.Context(), metav1.ListOptions{
		FieldSelector: "metadata.name=web", ResourceVersion: created.ResourceVersion,
	}))(t)
	defer watcher.Stop()

	for _, replicas := range []int32{2, 5, 1, 0} {
		n.foos.Change("web", func(foo *v1alpha1.Foo) { foo.Spec.Replicas = &replicas })
		n.foos.When("web", fmt.Sprintf("is Ready with %d Pods", replicas), func(foo *v1alpha1.Foo) bool {
			return isReady(foo) && foo.Status.Replicas == replicas
		})
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
}

func TestFooIsNotReadyWhileItsDeploymentIsNot(t *testing.T) {
	behaviour(t, 2)
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

func TestAvailableReplicasFollowThePods(t *testing.T) {
	behaviour(t, 2)
	n := parallelNamespace(t)
	n.createQuota("1")
	n.foos.Create(newFoo("web", "web", 2))
	n.foos.When("web", "reports 1 of 2 Pods, and is not Ready", func(foo *v1alpha1.Foo) bool {
		return foo.Status.Replicas == 1 && foo.Status.AvailableReplicas == 1 &&
			readyCondition(foo).Status == metav1.ConditionFalse
	})

	n.Kubectl("scale", "foo/web", "--replicas=1")
	n.foos.When("web", "is Ready", isReady)
}

// createQuota limits the number of Pods, and waits until the limit is in force.
func (n *namespace) createQuota(pods string) {
	n.T.Helper()
	n.Kubectl("create", "quota", "pods", "--hard=pods="+pods)
	suite.Eventually(n.T, "the quota is in force", func() (bool, string) {
		quota, err := suite.Kube.CoreV1().ResourceQuotas(n.Name).Get(
			n.T.Context(), "pods", metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		_, counted := quota.Status.Used[corev1.ResourcePods]
		return counted, "its Pods have not been counted yet"
	})
}
