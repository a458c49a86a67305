package main

import (
	"os"
	"testing"
)

// TestMain keeps the folders of the tests out of this repository: hack/env has go's temporary files
// in .local, t.TempDir, too, and a fork must not be written there.
func TestMain(m *testing.M) {
	os.Unsetenv("GOTMPDIR")
	m.Run()
}
