// Command learn gives exercises, and judges what you write: docs/learn.md.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "learn:", err)
		os.Exit(1)
	}
}

func run() error {
	root, err := filepath.Abs("..")
	if err != nil {
		return err
	}
	w, err := open(root, filepath.Join(root, ".local", "learn"))
	if err != nil {
		return err
	}
	return w.loop(os.Stdin)
}
