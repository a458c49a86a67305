package conformance

import (
	"testing"

	"example.com/sample-controller/internal/testing/suite"
)

func TestStoppedLeaderFreesTheLeaseAtOnce(t *testing.T) {
	behaviour(t, 17)
	suite.StoppedLeaderFreesTheLease(t)
}

func TestStandbyTakesOverFromAStoppedLeader(t *testing.T) {
	behaviour(t, 17)
	suite.StandbyTakesOverFromAStoppedLeader(t)
}

func TestStandbyTakesOverFromAKilledLeader(t *testing.T) {
	behaviour(t, 17)
	suite.StandbyTakesOverFromAKilledLeader(t)
}

func TestProgramStoppedInABurstLeavesNothingHalfDone(t *testing.T) {
	behaviour(t, 17)
	suite.FinishesItsWork(t, 200)
}
