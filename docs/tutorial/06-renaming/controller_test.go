package main

import (
	"context"
	"testing"
	"time"

	kubeinformers "k8s.io/client-go/informers"

	"example.com/sample-controller/docs/tutorial/internal/lab"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	fooinformers "example.com/sample-controller/pkg/generated/informers/externalversions"
)

// start runs the program as run does, with two workers.
func start(l *lab.Lab) {
	kubeFactory := kubeinformers.NewSharedInformerFactory(l.Kube, 0)
	fooFactory := fooinformers.NewSharedInformerFactory(l.Foo, 0)
	controller, err := NewController(l.Kube,
		fooFactory.Samplecontroller().V1alpha1().Foos(), kubeFactory.Apps().V1().Deployments())
	if err != nil {
		l.T.Fatal(err)
	}
	l.Start(func(ctx context.Context) {
		kubeFactory.StartWithContext(ctx)
		fooFactory.StartWithContext(ctx)
		controller.Run(ctx, 2)
		kubeFactory.Shutdown()
		fooFactory.Shutdown()
	})
}

func TestARenamedFooMovesItsDeployment(t *testing.T) {
	lab.Run(t, func(t *testing.T, l *lab.Lab) {
		start(l)
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

func TestAFooProceedsWhenItsNameIsFree(t *testing.T) {
	lab.Run(t, func(t *testing.T, l *lab.Lab) {
		l.CreateDeployment("web", 7)
		start(l)
		l.CreateFoo("example-foo", "web", 1)
		l.DeleteDeployment("web")

		if web := l.GetDeployment("web"); web == nil || *web.Spec.Replicas != 1 {
			t.Errorf("got %v, want the Foo's Deployment, with 1 replica", web)
		}
	})
}

func TestTheFooSaysNothingAboutATakenName(t *testing.T) {
	lab.Run(t, func(t *testing.T, l *lab.Lab) {
		l.CreateDeployment("web", 7)
		start(l)
		l.CreateFoo("example-foo", "web", 1)
		time.Sleep(time.Hour)

		if conditions := l.GetFoo("example-foo").Status.Conditions; len(conditions) > 0 {
			t.Errorf("conditions: got %v, want none", conditions)
		}
	})
}
