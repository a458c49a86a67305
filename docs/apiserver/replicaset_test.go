package apiserver

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// What is believed to be right raises no alarm: Kubernetes' own controller of ReplicaSets, which is
// the one of explore/board that runs with each change.
func TestReplicaSetsOfTheBoard(t *testing.T) {
	command := exec.Command("go", "test", "-count=1", "-timeout=30m", "./replicaset",
		"-explore.shard=1/1")
	command.Dir = filepath.Join(root, "explore/board")
	command.Env = append(os.Environ(), "GOWORK=off")
	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, output)
	}
}
