package main

import (
	"testing"

	appsinformers "k8s.io/client-go/informers/apps/v1"
	"k8s.io/client-go/kubernetes"

	"example.com/sample-controller/docs/internal/lab"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
	informers "example.com/sample-controller/pkg/generated/informers/externalversions/samplecontroller/v1alpha1"
)

// work works as run does.
var work = lab.Work(func(
	kube kubernetes.Interface, _ clientset.Interface, foos informers.TypedFooInformer,
	deployments appsinformers.TypedDeploymentInformer,
) (*Controller, error) {
	return NewController(kube, foos, deployments)
})

func TestARenamedFooMovesItsDeployment(t *testing.T) {
	lab.Run(t, func(t *testing.T, l *lab.Lab) {
		l.StartProgram(work)
		l.CreateFoo("example-foo", "old", 1)
		l.RollOut("old")
		l.ChangeFoo("example-foo", func(foo *v1alpha1.Foo) { foo.Spec.DeploymentName = "new" })
		if l.GetDeployment("new") == nil || l.GetDeployment("old") == nil {
			t.Error("want both Deployments until the new one is rolled out")
		}

		l.RollOut("new")

		if l.GetDeployment("new") == nil || l.GetDeployment("old") != nil {
			t.Error("want only the new Deployment after it is rolled out")
		}
	})
}

// TestExplore finds what docs/explore.md says, and nothing else.
func TestExplore(t *testing.T) { lab.Explore(t, "tutorial/06-renaming.md", work) }
