package main

import (
	"context"
	"testing"

	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	"example.com/sample-controller/docs/tutorial/internal/lab"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
	fooinformers "example.com/sample-controller/pkg/generated/informers/externalversions"
)

// work works as run does, with two workers.
func work(ctx context.Context, kube kubernetes.Interface, foo clientset.Interface) error {
	kubeFactory := kubeinformers.NewSharedInformerFactory(kube, 0)
	fooFactory := fooinformers.NewSharedInformerFactory(foo, 0)
	controller, err := NewController(kube,
		fooFactory.Samplecontroller().V1alpha1().Foos(), kubeFactory.Apps().V1().Deployments())
	if err != nil {
		return err
	}
	kubeFactory.StartWithContext(ctx)
	fooFactory.StartWithContext(ctx)
	controller.Run(ctx, 2)
	kubeFactory.Shutdown()
	fooFactory.Shutdown()
	return nil
}

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
