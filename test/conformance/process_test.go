package conformance

import (
	"fmt"
	"testing"

	"example.com/sample-controller/internal/testing/suite"
)

func TestNothingIsRequestedWhileNothingChanges(t *testing.T) {
	suite.RequestsNothing(t, func(empty *suite.Namespace) {
		n := with(empty)
		for i := range 100 {
			name := fmt.Sprintf("web-%d", i)
			n.foos.Create(newFoo(name, name, 1))
		}
		for i := range 100 {
			n.foos.When(fmt.Sprintf("web-%d", i), "is Ready", isReady)
		}
	})
}

func TestRestartWritesNothing(t *testing.T) {
	suite.RestartWritesNothing(t, func(empty *suite.Namespace) {
		n := with(empty)
		n.createReadyFoo(newFoo("web", "web", 2))
		n.createReadyFoo(newFoo("renamed", "old", 1))
		n.Kubectl("patch", "foo/renamed", "--type=merge", `--patch={"spec":{"deploymentName":"new"}}`)
		n.foos.When("renamed", "is Ready", isReady)
		n.deployments.Gone("old")
		n.Kubectl("create", "deployment", "foreign", "--image=example.com/foreign")
		n.foos.Create(newFoo("waiting", "foreign", 1))
		n.foos.When("waiting", "is not Ready: "+nameTaken, notReadyBecause(nameTaken))
	})
}

func TestProgramStoppedInABurstLeavesNothingHalfDone(t *testing.T) {
	suite.FinishesItsWork(t, 200)
}
