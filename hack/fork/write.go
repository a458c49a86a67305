package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// fork is a repository that is about to be written.
type fork struct {
	from     *repository
	names    names
	files    map[string]string
	modes    map[string]os.FileMode
	command  []string // with which it is made
	progress io.Writer
}

// newFork renames everything, and refuses names with which the fork would not work.
func newFork(from *repository, to names, out *omission) (*fork, error) {
	f := &fork{from: from, names: to, files: map[string]string{}, modes: map[string]os.FileMode{}}
	kept := from.kept(out, to.protected())
	err := errors.Join(unclean(mentions(kept, out, to.protected())),
		checkNotInScripts(kept, to.name, from.names.name))
	if err != nil {
		return nil, err
	}
	packages, aliases, err := parseAll(kept)
	if err != nil {
		return nil, err
	}
	kindRenamer := &renamer{}
	for _, old := range from.old() {
		// Only the kind is checked. Versions may be the same: every API has a V1.
		onlyKind := old
		onlyKind.kind, onlyKind.plural = to.kind, to.plural
		kindRenamer.words = append(kindRenamer.words, words(old, onlyKind, aliases)...)
	}
	kindRenamer.sort()
	for _, folder := range sortedKeys(packages) {
		if err := packages[folder].checkCollisions(kindRenamer, to.kind); err != nil {
			return nil, err
		}
	}
	r := newRenamer(from.old(), to, aliases)
	for _, file := range sortedKeys(kept) {
		renamed := r.rename("", file)
		if f.files[renamed] != "" {
			return nil, fmt.Errorf("two files would be called %s; choose other names", renamed)
		}
		if f.files[renamed], err = r.renameFile(file, kept[file]); err != nil {
			return nil, fmt.Errorf("renaming in %s: %w", file, err)
		}
		f.modes[renamed] = from.modes[file]
		if f.modes[renamed] == 0 { // one of the fork's own pages
			f.modes[renamed] = 0o644
		}
	}
	f.ignoreProgram()
	f.addMeaning()
	return f, unclean(leftovers(f.files, from.old(), to))
}

// size is how much there is of something.
type size struct{ files, lines int }

// library matches what knows no kind, and is there for tests only.
var library = regexp.MustCompile(`^explore/|^internal/testing/(?:cleanup|fakes|freeport|suite|wire)/`)

// size returns how much a team has to look after, and how much comes as from a library. What
// generators and go write does not count.
func (f *fork) size() (own, borrowed size) {
	for file, text := range f.files {
		what := &own
		if library.MatchString(file) {
			what = &borrowed
		}
		if name := path.Base(file); name != "go.mod" && name != "go.sum" {
			what.files++
			what.lines += strings.Count(text, "\n")
		}
	}
	return own, borrowed
}

// ignoreProgram makes git ignore what go build leaves in the root: it takes the last element of the
// module path as its name.
func (f *fork) ignoreProgram() {
	program := path.Base(f.names.module)
	for file := range f.files {
		if strings.HasPrefix(file, program+"/") {
			return // go build refuses to write a file that has the name of a folder
		}
	}
	if program != f.names.name {
		line := "/" + f.names.name + "\n"
		f.files[".gitignore"] = strings.Replace(f.files[".gitignore"], line, line+"/"+program+"\n", 1)
	}
}

// create makes the fork in a folder beside dir, and moves it to dir when everything has succeeded.
func (f *fork) create(ctx context.Context, dir string) (err error) {
	temporary, err := os.MkdirTemp(filepath.Dir(dir), ".fork-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temporary)) }()
	work := filepath.Join(temporary, filepath.Base(dir))
	for _, step := range []struct {
		what string
		do   func(context.Context, string) error
	}{
		{fmt.Sprintf("writing %d files", len(f.files)), f.write},
		{"generating code", f.generate},
		{"go vet ./... in . and test", f.vet},
		{"the first commit", f.commit},
	} {
		fmt.Fprintf(f.progress, "fork: %s\n", step.what)
		if err := step.do(ctx, work); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	// Remove deletes an empty folder, but not one that somebody has filled meanwhile.
	if err := os.Remove(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.Rename(work, dir)
}

// write writes the files, and borrows the tools.
func (f *fork) write(_ context.Context, dir string) error {
	for file, text := range f.files {
		full := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(full, []byte(text), f.modes[file]); err != nil {
			return err
		}
	}
	return f.borrowTools(dir)
}

// borrowTools links this repository's tools into the fork, which would need minutes to build the
// same. Their stamp comes along and says that. Links do no harm: a new build makes new files.
func (f *fork) borrowTools(dir string) error {
	const bin = ".local/bin"
	if _, err := os.Stat(filepath.Join(f.from.root, bin, "stamp")); err != nil {
		return nil // nothing was built, or not all of it
	}
	tools, err := os.ReadDir(filepath.Join(f.from.root, bin))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(dir, bin), 0o755); err != nil {
		return err
	}
	for _, tool := range tools {
		if tool.Name() == f.from.names.name || !tool.Type().IsRegular() {
			continue
		}
		from := filepath.Join(f.from.root, bin, tool.Name())
		to := filepath.Join(dir, bin, tool.Name())
		if os.Link(from, to) == nil {
			continue
		}
		if err := copyFile(from, to); err != nil {
			return err
		}
	}
	return nil
}

// copyFile copies a program to another file system, where it cannot be linked.
func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}

func (f *fork) generate(ctx context.Context, dir string) error {
	_, err := output(ctx, dir, filepath.Join(dir, "hack/update-codegen.sh"))
	return err
}

func (f *fork) vet(ctx context.Context, dir string) error {
	for _, module := range []string{".", "test"} {
		if _, err := output(ctx, dir, "go", "-C", module, "vet", "./..."); err != nil {
			return err
		}
	}
	return nil
}

// commit makes the fork a repository of its own, after a last check of all its files. The message
// has the version and the command, which are needed to take over later improvements.
func (f *fork) commit(ctx context.Context, dir string) error {
	version, err := f.from.version(ctx)
	if err != nil {
		return err
	}
	message := fmt.Sprintf("Fork %s\n\nIt was made from %s, commit\n%s, by\n\n    %s\n",
		f.names.kind, f.from.names.module, version, strings.Join(f.command, " "))
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"}} {
		if _, err := output(ctx, dir, "git", args...); err != nil {
			return err
		}
	}
	made, err := readFiles(ctx, dir)
	if err == nil {
		err = made.lacksNothing()
	}
	if err != nil {
		return err
	}
	if err := unclean(leftovers(made.files, f.from.old(), f.names)); err != nil {
		return err
	}
	args := []string{"commit", "-q", "-m", message}
	if _, err := output(ctx, dir, "git", "var", "GIT_COMMITTER_IDENT"); err != nil {
		args = append([]string{"-c", "user.name=" + f.names.name,
			"-c", "user.email=" + f.names.name + "@localhost"}, args...)
	}
	_, err = output(ctx, dir, "git", args...)
	return err
}

// lacksNothing returns an error if there are files that git does not track, but for what is built.
func (r *repository) lacksNothing() error {
	var lacking []string
	err := filepath.WalkDir(r.root, func(file string, entry fs.DirEntry, err error) error {
		file, _ = filepath.Rel(r.root, file) // it is below the root
		switch {
		case err != nil:
			return err
		case file == ".git" || file == ".local":
			return filepath.SkipDir
		case !entry.IsDir() && r.modes[file] == 0:
			lacking = append(lacking, file)
		}
		return nil
	})
	if err == nil && lacking != nil {
		err = fmt.Errorf("git ignores %d files of the fork, such as %s: git check-ignore -v says why",
			len(lacking), lacking[0])
	}
	return err
}
