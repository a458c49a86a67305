package check

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"example.com/sample-controller/internal/testing/must"
)

// TestAssembledProgramsCompile: what differs in chapters 14 and 15 still fits the root's program.
func TestAssembledProgramsCompile(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles for some seconds")
	}
	for _, chapter := range []string{"14-versions", "15-shards"} {
		assembled, err := exec.Command(filepath.Join(root, "docs/tutorial/assemble"), chapter).CombinedOutput()
		if err != nil {
			t.Errorf("docs/tutorial/assemble %s: %v\n%s", chapter, err, assembled)
			continue
		}
		vet := exec.Command("go", "vet", strings.TrimSpace(string(assembled)))
		vet.Dir = root
		if output, err := vet.CombinedOutput(); err != nil {
			t.Errorf("%v: %v\n%s", vet, err, output)
		}
	}
}

// TestOldVersionIsTheRoots: v1alpha1 of chapter 14 is the API of the root.
func TestOldVersionIsTheRoots(t *testing.T) {
	for _, file := range []string{"doc.go", "types.go"} {
		file = "pkg/apis/samplecontroller/v1alpha1/" + file
		want := must.Get(os.ReadFile(filepath.Join(root, file)))(t)
		if got, _ := os.ReadFile(filepath.Join(root, "docs/tutorial/14-versions", file)); string(got) != string(want) {
			t.Errorf("%s of 14-versions differs from the root's", file)
		}
	}
}
