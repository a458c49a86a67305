// Command learn gives exercises, and judges what you write: docs/learn.md.
//
//	learn                  the exercise of today: it judges each time that you save
//	learn list             all exercises
//	learn show NAME        the text of an exercise, and the file to edit
//	learn check NAME       judges it once
//	learn hint NAME        the next hint
//	learn solution NAME    the solution, after it has passed or after three tries
//	learn film NAME        a film of what goes wrong, for the lens
//	learn reset NAME       the file as it was in the beginning
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "learn:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	w, err := open(root, filepath.Join(root, ".local", "learn"))
	if err != nil {
		return err
	}
	if len(args) == 0 {
		return w.loop(os.Stdin)
	}
	if args[0] == "list" {
		w.list()
		return nil
	}
	do, found := map[string]func(*exercise) error{
		"show": w.show, "check": w.check, "hint": w.hint, "solution": w.solution, "film": w.film,
		"reset": w.reset,
	}[args[0]]
	if !found || len(args) != 2 {
		return fmt.Errorf(
			"%q: want list, or show, check, hint, solution, film or reset, and a name", args)
	}
	e, err := w.named(args[1])
	if err != nil {
		return err
	}
	if err := w.begin(e); err != nil {
		return err
	}
	return do(e)
}
