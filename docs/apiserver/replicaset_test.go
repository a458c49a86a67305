package apiserver

import (
	"os/exec"
	"testing"
)

// What is believed to be right raises no alarm: Kubernetes' own controller of ReplicaSets, with the
// modules of the control plane.
func TestReplicaSets(t *testing.T) {
	const lines = `dir=.local/replicaset module=example.com/sample-controller
rm -rf "$dir" && mkdir -p "$dir"
cp hack/tools/go.mod docs/apiserver/testdata/replicaset/*.go "$dir"
cat explore/go.sum hack/tools/go.sum >"$dir/go.sum"
cd "$dir"
go mod edit -require "$module/explore@v0.0.0" -replace "$module/explore=../../explore"
go test -mod=mod -count=1 -timeout 30m . -explore.shard 1/1`
	command := exec.Command("bash", "-ec", lines)
	command.Dir = root
	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, output)
	}
}
