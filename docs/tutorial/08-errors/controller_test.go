package main

import (
	"context"
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	"k8s.io/client-go/kubernetes"

	"example.com/sample-controller/docs/internal/lab"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
	informers "example.com/sample-controller/pkg/generated/informers/externalversions/samplecontroller/v1alpha1"
)

// work works as run does.
func work(ctx context.Context, kube kubernetes.Interface, foo clientset.Interface) error {
	recorder, err := newRecorder(ctx, kube)
	if err != nil {
		return err
	}
	defer recorder.Flush(time.Second)
	return lab.Work(func(
		kube kubernetes.Interface, foo clientset.Interface, foos informers.TypedFooInformer,
		deployments appsinformers.TypedDeploymentInformer,
	) (*Controller, error) {
		return NewController(kube, foo, foos, deployments, recorder)
	})(ctx, kube, foo)
}

func TestARefusalIsReportedAndRetriedSlowly(t *testing.T) {
	lab.Run(t, func(t *testing.T, l *lab.Lab) {
		l.Server.Fail("create", "deployments", 1000, apierrors.NewForbidden(
			appsv1.Resource("deployments"), "web", errors.New("exceeded quota")))
		l.StartProgram(work)
		l.CreateFoo("example-foo", "web", 1)
		time.Sleep(time.Minute)

		if got := l.Ready(); got != "False DeploymentRejected" {
			t.Errorf(`Ready: got %q, want "False DeploymentRejected"`, got)
		}
		// One at once, one after the event of the status, one each 15 seconds.
		if got := l.Requests("create", "deployments"); got < 4 || got > 7 {
			t.Errorf("creations tried in a minute: got %d, want 4 to 7", got)
		}
		if got := l.Requests("create", "events"); got != 1 {
			t.Errorf("Events: got %d, want 1", got)
		}
	})
}

func TestAnyOtherErrorIsRetriedAtOnce(t *testing.T) {
	lab.Run(t, func(t *testing.T, l *lab.Lab) {
		l.Fail("create", "deployments", 3)
		l.StartProgram(work)
		l.CreateFoo("example-foo", "web", 1)
		time.Sleep(time.Second)

		if l.GetDeployment("web") == nil {
			t.Error("after three errors and a second: got no Deployment")
		}
	})
}

func TestADeletionThatFailsDoesNotHideTheStatus(t *testing.T) {
	lab.Run(t, func(t *testing.T, l *lab.Lab) {
		l.StartProgram(work)
		l.CreateFoo("example-foo", "old", 1)
		l.Fail("delete", "deployments", 1000)
		l.ChangeFoo("example-foo", func(foo *v1alpha1.Foo) { foo.Spec.DeploymentName = "new" })
		l.RollOut("new")
		time.Sleep(time.Minute)

		if got := l.Ready(); got != "True Available" {
			t.Errorf(`Ready: got %q, want "True Available"`, got)
		}
	})
}

func TestATakenNameIsReportedOnce(t *testing.T) {
	lab.Run(t, func(t *testing.T, l *lab.Lab) {
		l.CreateDeployment("web", 7)
		l.StartProgram(work)
		l.CreateFoo("example-foo", "web", 1)
		l.ChangeFoo("example-foo", func(foo *v1alpha1.Foo) { foo.Spec.Replicas = new(int32(2)) })

		if got := l.Ready(); got != "False DeploymentNameTaken" {
			t.Errorf(`Ready: got %q, want "False DeploymentNameTaken"`, got)
		}
		if got := l.Requests("create", "events"); got != 1 {
			t.Errorf("Events: got %d, want 1", got)
		}
	})
}

func TestALaggingInformerMakesTheControllerRepeatItself(t *testing.T) {
	lab.Run(t, func(t *testing.T, l *lab.Lab) {
		l.StartProgram(work)
		l.Lag("deployments", 5*time.Second)
		l.CreateFoo("example-foo", "web", 1)
		l.ChangeFoo("example-foo", func(foo *v1alpha1.Foo) { foo.Spec.Replicas = new(int32(2)) })

		if got := l.Requests("create", "deployments"); got < 2 {
			t.Errorf("creations tried: got %d, want 2 or more", got)
		}
		if l.Errors.Load() == 0 {
			t.Error("no error was reported, want AlreadyExists")
		}
	})
}

// TestExplore finds what docs/explore.md says, and nothing else.
func TestExplore(t *testing.T) { lab.Explore(t, "tutorial/08-errors.md", work) }
