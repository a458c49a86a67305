package conformance

import (
	"testing"

	"example.com/sample-controller/internal/suite"
)

func TestProgramThatCannotWorkSaysWhatToDo(t *testing.T) {
	behaviour(t, 16)
	for _, obstacle := range suite.Obstacles(t) {
		part(t, obstacle.Name, obstacle.IsReported)
	}
}
