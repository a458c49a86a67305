// Package tutorial has only tests: of programs that are put together first.
package tutorial

import (
	"os/exec"
	"testing"

	"example.com/sample-controller/internal/testing/cluster"
	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/setting"
)

// The program of chapter 14 passes its own tests, and the conformance suite. It has a cluster of its own,
// because Foos are stored in the new version there.
func TestVersions(t *testing.T) {
	setting.Long(t)
	c := must.Get(cluster.Start("../..", cluster.NewName()))(t)
	t.Cleanup(c.Stop)
	t.Setenv("KUBECONFIG", c.Kubeconfig())
	for _, line := range []string{
		`program=$(tutorial/assemble 14-versions) && go test -count=1 -timeout 30m "$program" -cluster`,
		"tutorial/14-versions/conformance",
	} {
		command := exec.Command("bash", "-c", line)
		command.Dir = ".."
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", line, err, output)
		}
	}
}
