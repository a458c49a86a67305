package main

import (
	"context"
	"testing"
	"time"

	"example.com/sample-controller/docs/tutorial/internal/lab"
	"example.com/sample-controller/internal/fakes"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// start runs the program as run does, with two workers.
func start(l *lab.Lab) (stop func()) {
	return l.Start(func(ctx context.Context) {
		recorder, err := newEventRecorder(ctx, l.Kube)
		if err != nil {
			l.T.Error(err)
			return
		}
		kubeFactory, fooFactory := newInformerFactories(l.Kube, l.Foo)
		controller, err := NewController(l.Kube, l.Foo, fooFactory.Samplecontroller().V1alpha1().Foos(),
			kubeFactory.Apps().V1().Deployments(), recorder)
		if err != nil {
			l.T.Error(err)
			return
		}
		kubeFactory.StartWithContext(ctx)
		fooFactory.StartWithContext(ctx)
		controller.Run(ctx, 2)
		kubeFactory.Shutdown()
		fooFactory.Shutdown()
	})
}

func TestALaggingInformerDoesNotMakeTheControllerRepeatItself(t *testing.T) {
	lab.Run(t, func(t *testing.T, l *lab.Lab) {
		fakes.Lag(t, &l.Kube.Fake, "deployments", 5*time.Second)
		start(l)
		l.CreateFoo("example-foo", "web", 1)
		l.ChangeFoo("example-foo", func(foo *v1alpha1.Foo) { foo.Spec.Replicas = new(int32(2)) })
		time.Sleep(time.Minute)

		if got := l.Requests("create", "deployments"); got != 1 {
			t.Errorf("creations tried: got %d, want 1", got)
		}
		if got := *l.GetDeployment("web").Spec.Replicas; got != 2 {
			t.Errorf("replicas in the end: got %d, want 2", got)
		}
		if got := l.Errors.Load(); got != 0 {
			t.Errorf("errors reported: got %d, want 0", got)
		}
	})
}

func TestTheCacheHoldsOnlyDeploymentsOfFoos(t *testing.T) {
	lab.Run(t, func(t *testing.T, l *lab.Lab) {
		factory, _ := newInformerFactories(l.Kube, l.Foo)
		deployments := factory.Apps().V1().Deployments().Informer()
		l.Start(func(ctx context.Context) {
			factory.StartWithContext(ctx)
			<-ctx.Done()
			factory.Shutdown()
		})
		start(l)
		l.CreateDeployment("of-somebody-else", 1)
		l.CreateFoo("example-foo", "web", 1)

		if got := deployments.GetStore().ListKeys(); len(got) != 1 || got[0] != "default/web" {
			t.Errorf("in the cache: got %v, want default/web", got)
		}
	})
}

func TestTwoProcessesDoTheSameWorkTwice(t *testing.T) {
	lab.Run(t, func(t *testing.T, l *lab.Lab) {
		// Neither sees what the other has created before it has tried the same.
		fakes.Lag(t, &l.Kube.Fake, "deployments", 5*time.Second)
		start(l)
		start(l)
		l.CreateFoo("example-foo", "web", 1)

		if got := l.Requests("create", "deployments"); got != 2 {
			t.Errorf("creations tried: got %d, want one by each process", got)
		}
	})
}

func TestAStopLosesTheLastEvents(t *testing.T) {
	lab.Run(t, func(t *testing.T, l *lab.Lab) {
		l.CreateFoo("example-foo", "web", 1)
		l.Fail("create", "events", 1) // which would be written a second later
		stop := start(l)
		stop()
		time.Sleep(time.Hour)

		if got := l.Requests("create", "events"); got != 1 {
			t.Errorf("tries to write the Event: got %d, want only the one that failed", got)
		}
	})
}
