package conformance

import (
	"fmt"
	"testing"

	"example.com/sample-controller/internal/testing/suite"
)

func TestNothingIsRequestedWhileNothingChanges(t *testing.T) {
	suite.RequestsNothing(t, func(empty *suite.Namespace) {
		n := with(empty)
		for i := range 30 {
			n.websites.Create(newWebsite(fmt.Sprintf("web-%d", i), 1))
		}
		for i := range 30 {
			n.websites.When(fmt.Sprintf("web-%d", i), "is up", isUp)
		}
	})
}

func TestRestartWritesNothing(t *testing.T) {
	suite.RestartWritesNothing(t, func(empty *suite.Namespace) {
		n := with(empty)
		n.createUp(newWebsite("up", 2))
		n.createWaiting("waiting")
	})
}

func TestStandbyTakesOverFromAStoppedLeader(t *testing.T) {
	suite.StandbyTakesOverFromAStoppedLeader(t)
}

func TestStandbyTakesOverFromAKilledLeader(t *testing.T) {
	suite.StandbyTakesOverFromAKilledLeader(t)
}

func TestProgramStoppedInABurstLeavesNothingHalfDone(t *testing.T) { suite.FinishesItsWork(t, 50) }

func TestProgramThatCannotWorkSaysWhatToDo(t *testing.T) {
	suite.ProgramThatCannotWorkSaysWhatToDo(t)
}
