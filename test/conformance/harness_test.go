// Package conformance tests, from the outside and on a real API server, what a controller of Foos
// has to do. The controller is a program that the tests start:
//
//	go test ./conformance                                 # on clusters that it starts
//	KUBECONFIG=... go test ./conformance                  # on a cluster of hack/cluster
//	go test ./conformance -controller 'path/to/program'   # any other program
//
// What is not about Foos is in the package suite, below internal/. Its doc comment says what a
// program has to do, and in which order the tests run.
package conformance

import (
	"flag"
	"os"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/internal/testing/suite"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
	fooclient "example.com/sample-controller/pkg/generated/clientset/versioned/typed/samplecontroller/v1alpha1"
)

func TestMain(m *testing.M) {
	suite.Define(suite.Config{
		APIVersion: "samplecontroller.k8s.io/v1alpha1", Kind: "Foo", Resource: "foos",
		Name:       deployedName,
		CRD:        "../../artifacts/examples/crd.yaml",
		Root:       "../..",
		Build:      "make -s build",
		Controller: "sample-controller --metrics-bind-address=0 --health-probe-bind-address=0",
		Serial:     "Deployed|Foos|Metrics|ByKustomize|Program|Nothing",
		Create: func(n *suite.Namespace, name string) {
			with(n).foos.Create(newFoo(name, name, 0)) // without Pods, which a quota may forbid
		},
		Await: func(n *suite.Namespace, name string) { with(n).foos.When(name, "is Ready", isReady) },
	})
	flag.Parse()
	os.Exit(suite.Run(m))
}

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
