package main

import (
	"path/filepath"
	"testing"

	"example.com/sample-controller/internal/testing/must"
)

// A page takes the place of a page, and of nothing else.
func TestPageReplacesOnlyAPage(t *testing.T) {
	for file, refused := range map[string]bool{"other/a": false, "page/play.bin": false, "page/mine": true, "page": true} {
		folder := t.TempDir()
		must.Do(t, writeFile(filepath.Join(folder, file), nil))
		if err := check(folder + "/page"); (err != nil) != refused {
			t.Errorf("with %s: got %v, refused: %t", file, err, refused)
		}
	}
}
