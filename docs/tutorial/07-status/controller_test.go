package main

import (
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"example.com/sample-controller/docs/internal/lab"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// work works as run does.
var work = lab.Work(NewController)

func TestATakenNameIsInTheStatus(t *testing.T) {
	lab.Run(t, func(t *testing.T, l *lab.Lab) {
		l.CreateDeployment("web", 7)
		l.StartProgram(work)
		l.CreateFoo("example-foo", "web", 1)

		if got := l.Ready(); got != "False DeploymentNameTaken" {
			t.Errorf(`Ready: got %q, want "False DeploymentNameTaken"`, got)
		}
	})
}

func TestNothingIsWrittenWhileNothingChanges(t *testing.T) {
	lab.Run(t, func(t *testing.T, l *lab.Lab) {
		l.StartProgram(work)
		l.CreateFoo("example-foo", "web", 1)
		l.RollOut("web")
		before := l.Requests("*", "*")
		time.Sleep(time.Hour)

		if got := l.Requests("*", "*") - before; got != 0 {
			t.Errorf("requests in an hour: got %d, want 0", got)
		}
	})
}

func TestAStatusThatWasRefusedIsWrittenAgain(t *testing.T) {
	lab.Run(t, func(t *testing.T, l *lab.Lab) {
		l.Fail("update", "foos", 1)
		l.StartProgram(work)
		l.CreateFoo("example-foo", "web", 1)
		time.Sleep(time.Minute)

		if got := l.Ready(); got != "False Progressing" {
			t.Errorf("Ready a minute later: got %q, want that of the Foo's Deployment", got)
		}
	})
}

func TestAFooThatIsHeldSaysThatItsDeploymentIsGone(t *testing.T) {
	lab.Run(t, func(t *testing.T, l *lab.Lab) {
		l.StartProgram(work)
		l.CreateFoo("example-foo", "web", 1)
		l.RollOut("web")
		l.ChangeFoo("example-foo", func(foo *v1alpha1.Foo) {
			foo.Finalizers = []string{"example.com/held"}
		})
		l.DeleteFoo("example-foo")
		if got := l.Ready(); got != "True Available" {
			t.Errorf(`Ready while the Deployment exists: got %q, want "True Available"`, got)
		}
		l.DeleteDeployment("web")

		if got := l.Ready(); got != "False FooTerminating" {
			t.Errorf(`Ready when the Deployment is gone: got %q, want "False FooTerminating"`, got)
		}
		if l.GetDeployment("web") != nil {
			t.Error("the controller created the Deployment again")
		}
	})
}

func TestTheStatusDoesNotSayWhatWasRefused(t *testing.T) {
	lab.Run(t, func(t *testing.T, l *lab.Lab) {
		l.Server.Fail("create", "deployments", 1000, apierrors.NewForbidden(
			appsv1.Resource("deployments"), "web", errors.New("exceeded quota")))
		l.StartProgram(work)
		l.CreateFoo("example-foo", "web", 1)
		time.Sleep(time.Minute)

		if got := l.Ready(); got != "absent" {
			t.Errorf("Ready: got %q, want none", got)
		}
		if got := l.Requests("create", "deployments"); got < 10 {
			t.Errorf("creations tried in a minute: got %d, want 10 or more", got)
		}
	})
}

// TestExplore finds what docs/explore.md says, and nothing else.
func TestExplore(t *testing.T) { lab.Explore(t, "tutorial/07-status.md", work) }
