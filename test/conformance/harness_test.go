package conformance

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/internal/testing/suite"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
	fooclient "example.com/sample-controller/pkg/generated/clientset/versioned/typed/samplecontroller/v1alpha1"
)

const (
	managedBy = "app.kubernetes.io/managed-by"
	nameTaken = "DeploymentNameTaken"
)

// namespace is the namespace of one test, with the objects in it.
type namespace struct {
	*suite.Namespace
	foos        suite.Objects[*v1alpha1.Foo]
	deployments suite.Objects[*appsv1.Deployment]
}

// parallelNamespace lets t run in parallel, in its own namespace, with the controller that all
// parallel tests share.
func parallelNamespace(t *testing.T) *namespace {
	t.Helper()
	return with(suite.ParallelNamespace(t))
}

func newNamespace(t *testing.T) *namespace {
	t.Helper()
	return with(suite.NewNamespace(t))
}

func with(n *suite.Namespace) *namespace {
	deployments := suite.Kube.AppsV1().Deployments(n.Name)
	return &namespace{
		Namespace:   n,
		foos:        suite.NewObjects(n.T, "Foo", fooClient(n)),
		deployments: suite.NewObjects(n.T, "Deployment", deployments),
	}
}

func fooClient(n *suite.Namespace) fooclient.FooInterface {
	return clientset.NewForConfigOrDie(suite.Cluster).SamplecontrollerV1alpha1().Foos(n.Name)
}

func newFoo(name, deploymentName string, replicas int32) *v1alpha1.Foo {
	return &v1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.FooSpec{DeploymentName: deploymentName, Replicas: &replicas},
	}
}

func (n *namespace) createReadyFoo(foo *v1alpha1.Foo) *v1alpha1.Foo {
	n.T.Helper()
	n.foos.Create(foo)
	return n.foos.When(foo.Name, "is Ready", isReady)
}

func exists(*appsv1.Deployment) bool { return true }

func isReady(foo *v1alpha1.Foo) bool {
	ready := readyCondition(foo)
	return ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == foo.Generation &&
		foo.Status.ObservedGeneration == foo.Generation
}

// notReadyBecause returns a check for Ready=False with that reason, about the newest spec.
func notReadyBecause(reason string) func(*v1alpha1.Foo) bool {
	return func(foo *v1alpha1.Foo) bool {
		ready := readyCondition(foo)
		return ready.Status == metav1.ConditionFalse && ready.Reason == reason &&
			ready.ObservedGeneration == foo.Generation
	}
}

// readyCondition returns the Ready condition of foo, or an empty condition.
func readyCondition(foo *v1alpha1.Foo) metav1.Condition {
	if ready := meta.FindStatusCondition(foo.Status.Conditions, "Ready"); ready != nil {
		return *ready
	}
	return metav1.Condition{}
}
