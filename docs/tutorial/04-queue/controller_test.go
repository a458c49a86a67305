package main

import (
	"testing"
	"time"

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
	_ appsinformers.TypedDeploymentInformer,
) (*Controller, error) {
	return NewController(kube, foos)
})

func TestAFailedRequestIsTriedAgain(t *testing.T) {
	lab.Run(t, func(t *testing.T, l *lab.Lab) {
		l.Fail("create", "deployments", 5)
		l.StartProgram(work)
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

func TestAScaledFooIsNoticedButTheDeploymentIsNotChanged(t *testing.T) {
	lab.Run(t, func(t *testing.T, l *lab.Lab) {
		l.StartProgram(work)
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

// TestExplore finds what docs/explore.md says, and nothing else.
func TestExplore(t *testing.T) { lab.Explore(t, "tutorial/04-queue.md", work) }
