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
	copies, err := filepath.Glob("*/deployment.go")
	if err != nil || len(copies) == 0 {
		t.Fatalf("no example has a deployment.go: %v", err)
	}
	for _, path := range copies {
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s differs from the one in the root, copy it again (%v)", path, err)
		}
	}
}
