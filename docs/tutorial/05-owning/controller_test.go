package main

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

func TestADeletedDeploymentComesBack(t *testing.T) {
	lab.Run(t, func(t *testing.T, l *lab.Lab) {
		start(l)
		l.CreateFoo("example-foo", "web", 1)
		l.DeleteDeployment("web")

		if l.GetDeployment("web") == nil {
			t.Error("the Deployment did not come back")
		}
	})
}

func TestTheFooOwnsItsDeployment(t *testing.T) {
	lab.Run(t, func(t *testing.T, l *lab.Lab) {
		start(l)
		l.CreateFoo("example-foo", "web", 1)

		owner := metav1.GetControllerOf(l.GetDeployment("web"))
		if owner == nil || owner.Kind != "Foo" || owner.UID != "uid-of-example-foo" {
			t.Errorf("owner: got %v, want the Foo", owner)
		}
	})
}

func TestOnlyWhatTheFooDecidesIsRepaired(t *testing.T) {
	lab.Run(t, func(t *testing.T, l *lab.Lab) {
		start(l)
		l.CreateFoo("example-foo", "web", 1)
		l.ChangeDeployment("web", func(d *appsv1.Deployment) {
			d.Spec.Replicas = new(int32(7))
			metav1.SetMetaDataAnnotation(&d.Spec.Template.ObjectMeta, "restartedAt", "noon")
		})

		deployment := l.GetDeployment("web")
		if got := *deployment.Spec.Replicas; got != 1 {
			t.Errorf("replicas: got %d, want 1 again", got)
		}
		if got := deployment.Spec.Template.Annotations["restartedAt"]; got != "noon" {
			t.Errorf("annotation of somebody else: got %q, want noon", got)
		}
	})
}

func TestAForeignDeploymentIsNotTouched(t *testing.T) {
	lab.Run(t, func(t *testing.T, l *lab.Lab) {
		l.CreateDeployment("web", 7)
		start(l)
		l.CreateFoo("example-foo", "web", 1)

		if got := *l.GetDeployment("web").Spec.Replicas; got != 7 {
			t.Errorf("replicas: got %d, want still 7", got)
		}
	})
}

func TestARenamedFooLeavesItsOldDeployment(t *testing.T) {
	lab.Run(t, func(t *testing.T, l *lab.Lab) {
		start(l)
		l.CreateFoo("example-foo", "old", 1)
		l.ChangeFoo("example-foo", func(foo *v1alpha1.Foo) { foo.Spec.DeploymentName = "new" })
		l.RollOut("new")

		if l.GetDeployment("new") == nil || l.GetDeployment("old") == nil {
			t.Error("want both Deployments, the new one and the one left over")
		}
	})
}

func TestAFooDoesNotNoticeThatItsDeploymentWasReleased(t *testing.T) {
	lab.Run(t, func(t *testing.T, l *lab.Lab) {
		start(l)
		l.CreateFoo("example-foo", "web", 1)
		l.ChangeDeployment("web", func(d *appsv1.Deployment) { d.OwnerReferences = nil })
		l.DeleteDeployment("web")
		time.Sleep(time.Hour)

		if l.GetDeployment("web") != nil {
			t.Error("the Deployment came back, want its deletion not to be noticed")
		}
	})
}

func TestAFooDoesNotNoticeThatItsNameIsFree(t *testing.T) {
	lab.Run(t, func(t *testing.T, l *lab.Lab) {
		l.CreateDeployment("web", 7)
		start(l)
		l.CreateFoo("example-foo", "web", 1)
		l.DeleteDeployment("web")
		time.Sleep(time.Hour)

		if l.GetDeployment("web") != nil {
			t.Error("the Foo got its Deployment, want it not to notice that the name is free")
		}
	})
}
