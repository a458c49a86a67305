package main

import (
	"context"
	"testing"
	"time"

	"example.com/sample-controller/docs/internal/lab"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	fooinformers "example.com/sample-controller/pkg/generated/informers/externalversions"
)

// start runs the program as run does.
func start(l *lab.Lab) {
	l.Start(func(ctx context.Context) {
		factory := fooinformers.NewSharedInformerFactory(l.Foo, 0)
		foos := factory.Samplecontroller().V1alpha1().Foos()
		if err := addEventHandlers(ctx, foos, l.Kube); err != nil {
			l.T.Error(err)
		}
		factory.StartWithContext(ctx)
		<-ctx.Done()
		factory.Shutdown()
	})
}

func TestFooGetsItsDeployment(t *testing.T) {
	lab.Run(t, func(t *testing.T, l *lab.Lab) {
		l.CreateFoo("early", "early", 1)
		start(l)
		l.CreateFoo("late", "late", 2)

		if l.GetDeployment("early") == nil {
			t.Error("the Foo from before the start has no Deployment")
		}
		if late := l.GetDeployment("late"); late == nil || *late.Spec.Replicas != 2 {
			t.Errorf("the later Foo: got %v, want a Deployment with 2 replicas", late)
		}
	})
}

func TestAFailedRequestIsNotTriedAgain(t *testing.T) {
	lab.Run(t, func(t *testing.T, l *lab.Lab) {
		l.Fail("create", "deployments", 1)
		start(l)
		l.CreateFoo("example-foo", "web", 1)
		time.Sleep(time.Hour)

		if l.GetDeployment("web") != nil {
			t.Error("the Deployment was created by a second request, want only the failed one")
		}
	})
}

func TestAScaledFooIsIgnored(t *testing.T) {
	lab.Run(t, func(t *testing.T, l *lab.Lab) {
		start(l)
		l.CreateFoo("example-foo", "web", 1)
		l.ChangeFoo("example-foo", func(foo *v1alpha1.Foo) { foo.Spec.Replicas = new(int32(3)) })

		if got := *l.GetDeployment("web").Spec.Replicas; got != 1 {
			t.Errorf("replicas: got %d, want still 1", got)
		}
	})
}
