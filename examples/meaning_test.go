// Package examples checks what the example programs have in common.
package examples

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestFooMeansTheSameEverywhere(t *testing.T) {
	want, err := os.ReadFile("../deployment.go")
	if err != nil {
		t.Fatal(err)
	}
	expectCopies(t, "deployment.go", want, 3)
}

// expectCopies fails the test unless there are so many copies of a file in the examples.
func expectCopies(t *testing.T, name string, want []byte, count int) {
	t.Helper()
	copies, err := filepath.Glob("*/" + name)
	if err != nil || len(copies) != count {
		t.Fatalf("%d examples have a copy of %s, want %d (%v)", len(copies), name, count, err)
	}
	for _, path := range copies {
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s differs from the one in the root, copy it again (%v)", path, err)
		}
	}
}
