package main

import (
	"os"
	"path/filepath"
	"testing"

	"example.com/sample-controller/internal/testing/must"
)

// A page takes the place of a page, and of nothing else.
func TestPageReplacesOnlyAPage(t *testing.T) {
	for file, refused := range map[string]bool{"page.new/a": false, "page/play.bin": false, "page/mine": true,
		"page": true} {
		folder := t.TempDir()
		must.Do(t, writeFile(filepath.Join(folder, file), nil))
		if err := check(folder + "/page"); (err != nil) != refused {
			t.Errorf("with %s: got %v, refused: %t", file, err, refused)
		}
	}
	page := t.TempDir() + "/page"
	must.Do(t, writeFile(page+"/old", nil))
	must.Do(t, writeFile(page+".new/new", nil))
	must.Do(t, swap(page))
	if entries := must.Get(os.ReadDir(page))(t); len(entries) != 1 || entries[0].Name() != "new" {
		t.Errorf("got %v, want only the new files", entries)
	}
}
