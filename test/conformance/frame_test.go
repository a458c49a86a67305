package conformance

import (
	"encoding/json"
	"testing"

	"example.com/sample-controller/internal/testing/suite"
)

func TestProgramThatCannotWorkSaysWhatToDo(t *testing.T) {
	suite.ProgramThatCannotWorkSaysWhatToDo(t)
}

func TestDeployedControllerSaysInItsLogWhyItEnds(t *testing.T) {
	noServer := suite.Server("https://127.0.0.1:1")
	program := suite.StartProgram(t, "--logging-format=json", noServer)
	program.AwaitEnd(t)

	var line struct{ Msg, Err string }
	err := json.Unmarshal([]byte(program.LastLine()), &line)
	if err != nil || line.Msg != "Exiting" || line.Err == "" {
		t.Errorf("got %+v from the last line (error: %v): %s", line, err, program.LastLine())
	}
}

func TestStandbyTakesOverFromAStoppedLeader(t *testing.T) {
	suite.StandbyTakesOverFromAStoppedLeader(t)
}

func TestStandbyTakesOverFromAKilledLeader(t *testing.T) {
	suite.StandbyTakesOverFromAKilledLeader(t)
}
