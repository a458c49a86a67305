package hack

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// The product imports nothing of the other modules but explore in tests, explore imports nothing
// from here, and the lens only explore. The tests of the lens use the product's helpers for tests.
func TestNoImportCrossesABorder(t *testing.T) {
	const project = "example.com/sample-controller/"
	for _, border := range []struct {
		module, packages string
		tests            bool
		allowed          []string
	}{
		{"..", ".", false, []string{"internal/", "pkg/"}},
		{"..", "./...", true, []string{"internal/", "pkg/", "explore"}},
		{".", "./...", true, []string{"hack", "internal/", "pkg/", "explore"}},
		{"../explore", "./...", true, []string{"explore"}},
		{"../lens", "./...", false, []string{"lens", "explore"}},
	} {
		if _, err := os.Stat(border.module + "/go.mod"); os.IsNotExist(err) {
			continue // a fork has no lens
		}
		list := exec.Command("go", "-C", border.module, "list", "-deps",
			fmt.Sprintf("-test=%t", border.tests), border.packages)
		output, err := list.Output()
		if err != nil {
			t.Fatalf("%v: %v", list.Args, err)
		}
		for line := range strings.Lines(string(output)) {
			path, here := strings.CutPrefix(strings.Fields(line)[0], project)
			allowed := !here
			for _, prefix := range border.allowed {
				allowed = allowed || strings.HasPrefix(path, prefix)
			}
			if !allowed {
				t.Errorf("%s needs %s, which is beyond its border", border.module, path)
			}
		}
	}
}
