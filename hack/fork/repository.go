package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"example.com/sample-controller/docs/internal/anchors"
	"example.com/sample-controller/internal/prologue"
)

// repository is the repository to fork, as it is in the working tree.
type repository struct {
	root  string
	names names
	// example has the names of the example, and others those that are old besides names.
	example names
	others  []names
	files   map[string]string // what git tracks, path to text
	modes   map[string]os.FileMode
}

// output runs a command and returns what it prints, without the last newline.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	c := prologue.Command(ctx, dir, name, args...)
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s%s", filepath.Base(name), strings.Join(args, " "), err,
			stdout.String(), stderr.String())
	}
	return strings.TrimRight(stdout.String(), "\n"), nil
}

// openRepository reads the repository that contains the folder.
func openRepository(ctx context.Context, dir string) (*repository, error) {
	root, err := output(ctx, dir, "git", "rev-parse", "--show-toplevel")
	if err == nil {
		_, err = os.Stat(filepath.Join(root, templates, "main.go"))
	}
	if err != nil {
		return nil, fmt.Errorf("this folder is a copy without a git repository of its own, and git "+
			"says what is forked: clone the repository, and run this there (%w)", err)
	}
	r, err := readFiles(ctx, root)
	if err != nil {
		return nil, err
	}
	var errs [3]error
	r.names, errs[0] = readNames(root, "deployment.go")
	r.names.module, errs[1] = find(root, "go.mod", `^module (\S+)$`)
	r.example, errs[2] = readNames(filepath.Join(root, example), "meaning/children.go")
	r.example.module = path.Join(r.names.module, example)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("finding the names in this repository: %w", err)
	}
	return r, nil
}

// readFiles reads the files that git tracks in a repository.
func readFiles(ctx context.Context, root string) (*repository, error) {
	r := &repository{root: root, files: map[string]string{}, modes: map[string]os.FileMode{}}
	list, err := output(ctx, root, "git", "ls-files", "-z")
	if err != nil {
		return nil, err
	}
	for file := range strings.SplitSeq(strings.TrimRight(list, "\x00"), "\x00") {
		if err := r.read(file); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// read reads one file.
func (r *repository) read(file string) error {
	full := filepath.Join(r.root, file)
	info, err := os.Lstat(full)
	if errors.Is(err, os.ErrNotExist) {
		return nil // deleted in the working tree
	}
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file, and this program cannot fork anything else", file)
	}
	text, err := os.ReadFile(full)
	r.files[file], r.modes[file] = string(text), info.Mode().Perm()
	return err
}

// version returns the commit that is forked, and says if files have changed since.
func (r *repository) version(ctx context.Context) (string, error) {
	commit, err := output(ctx, r.root, "git", "rev-parse", "HEAD")
	if err != nil {
		return "", err
	}
	changed, err := output(ctx, r.root, "git", "status", "--porcelain", "--untracked-files=no")
	if changed != "" {
		commit += " with changes that are not committed"
	}
	return commit, err
}

// templates is the folder of the fork's own pages, which are in this repository's names.
const templates = "hack/fork/"

// kept returns the files of a fork, in the old names: without what is about this project, without
// what is generated, and with the fork's own pages.
func (r *repository) kept(out *omission, protected bool) map[string]string {
	drop := func(file string) func(string) bool {
		return func(unit string) bool {
			return out.mention(file, unit) != "" || evidence.MatchString(unit) ||
				!protected && strings.Contains(unit, approval)
		}
	}
	pages := templates
	if r.others != nil {
		pages += "website/"
	}
	kept := map[string]string{}
	for file, text := range r.files {
		page, isTemplate := strings.CutSuffix(strings.TrimPrefix(file, pages), ".tmpl")
		switch {
		case isTemplate && !strings.Contains(page, "/"):
			kept[page] = withoutUnits(page, text, drop(page))
		case out.has(file) || isGenerated(text):
		case r.files[pages+file+".tmpl"] != "":
		default:
			kept[file] = withoutUnits(file, withoutMeasurements(text), drop(file))
			if !protected {
				kept[file] = withoutApproval(file, kept[file])
			}
		}
	}
	for file, text := range kept {
		if path.Ext(file) != ".md" {
			continue
		}
		kept[file] = anchor.ReplaceAllStringFunc(text, func(link string) string {
			parts := anchor.FindStringSubmatch(link)
			to := file
			if parts[2] != "" {
				to = path.Join(path.Dir(file), parts[2])
			}
			if strings.Contains(parts[2], "://") || anchors.Has(kept[to], parts[3]) {
				return link
			}
			return parts[1] // the section has gone
		})
	}
	kept["hack/test"] = withoutSteps(kept["hack/test"])
	for file, text := range kept {
		if path.Dir(file) == mutantLists && path.Ext(file) == ".txt" {
			kept[file] = withoutMutants(text, kept)
		}
	}
	return kept
}

// mutantLists is the folder with the lists of mutants.
const mutantLists = "internal/testing/mutants"

// withoutMutants returns a list without the mutants of files that a fork does not get, and without
// those that no test would notice there.
func withoutMutants(list string, files map[string]string) string {
	var kept, file string
	isIn := false // the mutant that the line belongs to
	for line := range strings.Lines(list) {
		colon := strings.LastIndex(line, ": ")
		switch {
		case strings.HasPrefix(line, " "):
		case colon > 0:
			there := slices.DeleteFunc(strings.Split(strings.TrimSpace(line[colon+2:]), ", "),
				func(test string) bool { return !hasTest(files, path.Base(test)) })
			isIn = files[file] != "" && len(there) > 0
			line = line[:colon+2] + strings.Join(there, ", ") + "\n"
		default:
			file = strings.TrimSpace(line)
			isIn = files[file] != ""
		}
		if isIn {
			kept += line
		}
	}
	return kept
}

// hasTest reports whether one of the files has the test, or what it is a part of: TestA.B.
func hasTest(files map[string]string, test string) bool {
	test, _, _ = strings.Cut(test, ".")
	for file, text := range files {
		if strings.HasSuffix(file, "_test.go") && strings.Contains(text, "\nfunc "+test+"(") {
			return true
		}
	}
	return false
}
