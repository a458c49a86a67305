// Command learn gives exercises, and judges what you write: docs/learn.md.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	root, err := os.Getwd()
	if err == nil {
		var w *workspace
		if w, err = open(root, filepath.Join(root, ".local", "learn")); err == nil {
			err = w.loop(os.Stdin)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "learn:", err)
		os.Exit(1)
	}
}
