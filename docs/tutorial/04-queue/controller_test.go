package main

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/docs/tutorial/internal/lab"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	fooinformers "example.com/sample-controller/pkg/generated/informers/externalversions"
)

// start runs the program as run does, with two workers, and returns its Controller.
func start(l *lab.Lab) *Controller {
	factory := fooinformers.NewSharedInformerFactory(l.Foo, 0)
	controller, err := NewController(l.Kube, factory.Samplecontroller().V1alpha1().Foos())
	if err != nil {
		l.T.Fatal(err)
	}
	l.Start(func(ctx context.Context) {
		factory.StartWithContext(ctx)
		controller.Run(ctx, 2)
		factory.Shutdown()
	})
	return controller
}

func TestAFailedRequestIsTriedAgain(t *testing.T) {
	lab.Run(t, func(t *testing.T, l *lab.Lab) {
		l.Fail("create", "deployments", 5)
		start(l)
		l.CreateFoo("example-foo", "web", 1)
		time.Sleep(time.Second) // the delays are 5, 10, 20, 40 and 80 ms

		if l.GetDeployment("web") == nil {
			t.Error("the sixth try did not create the Deployment")
		}
		if got := l.Errors.Load(); got != 5 {
			t.Errorf("errors reported: got %d, want 5", got)
		}
	})
}

func TestHowOftenAFooIsEnqueuedDoesNotMatter(t *testing.T) {
	lab.Run(t, func(t *testing.T, l *lab.Lab) {
		controller := start(l)
		foo := &v1alpha1.Foo{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "example-foo"}}
		for range 100 {
			controller.enqueueFoo(cache.MetaObjectToName(foo), foo, "Foo updated")
			if got := controller.queue.Len(); got > 1 {
				t.Fatalf("keys in the queue: got %d, want at most 1", got)
			}
		}
	})
}

func TestADeletedDeploymentIsNotNoticed(t *testing.T) {
	lab.Run(t, func(t *testing.T, l *lab.Lab) {
		start(l)
		l.CreateFoo("example-foo", "web", 1)
		l.DeleteDeployment("web")
		time.Sleep(time.Hour)

		if l.GetDeployment("web") != nil {
			t.Error("the Deployment came back, want its deletion not to be noticed")
		}
	})
}

func TestAScaledFooIsNoticedButTheDeploymentIsNotChanged(t *testing.T) {
	lab.Run(t, func(t *testing.T, l *lab.Lab) {
		start(l)
		l.CreateFoo("example-foo", "web", 1)
		l.ChangeFoo("example-foo", func(foo *v1alpha1.Foo) { foo.Spec.Replicas = new(int32(3)) })

		if got := l.Requests("create", "deployments"); got != 2 {
			t.Errorf("creates: got %d, want 2", got)
		}
		if got := *l.GetDeployment("web").Spec.Replicas; got != 1 {
			t.Errorf("replicas: got %d, want still 1", got)
		}
	})
}
