package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

// fork is a repository that is about to be written.
type fork struct {
	from     *repository
	old      []names // which must not be in it
	names    names
	files    map[string]string
	command  []string // with which it is made
	progress io.Writer
}

// newFork copies and renames everything, and refuses names with which the fork would not work.
func newFork(from *repository, to names, fromExample bool) (*fork, error) {
	f := &fork{from: from, old: []names{foo}, names: to, progress: io.Discard}
	if fromExample { // its API is called as its kind, in Go
		f.old = []names{website, foo}
		f.names.pkg, f.names.goGroup = strings.ToLower(to.kind), to.kind
	}
	files := from.copied(fromExample)
	untouched := map[string]string{}
	for file, text := range files {
		if isIn(file, []string{library}) {
			untouched[file] = text
			delete(files, file)
		}
	}
	if err := checkKind(files, f.old[0], to); err != nil {
		return nil, err
	}
	var err error
	if f.files, err = renameFiles(files, f.old, f.names); err != nil {
		return nil, err
	}
	maps.Copy(f.files, untouched)
	// git ignores what go build leaves in the root, a program with the last name of the module path, but
	// no folder of that name.
	if program := path.Base(to.module); program != to.name {
		f.files[".gitignore"] += "/" + program + "\n!/" + program + "/\n"
	}
	return f, unclean(leftovers(f.files, f.old, f.names))
}

// size returns how many files and lines a team has to look after: without explore, and without what
// generators and go write.
func (f *fork) size() (files, lines int) {
	for file, text := range f.files {
		if !isIn(file, []string{library, "go.*", "*/go.*", "*/*/go.*"}) {
			files, lines = files+1, lines+strings.Count(text, "\n")
		}
	}
	return files, lines
}

// create makes the fork in dir, which is new or empty. If a step fails, it removes dir.
func (f *fork) create(ctx context.Context, dir string) error {
	for _, step := range []struct {
		what string
		do   func(context.Context, string) error
	}{
		{fmt.Sprintf("writing %d files", len(f.files)), f.write},
		{"generating code", f.generate},
		{"compiling it", compile},
		{"the first commit", f.commit},
	} {
		fmt.Fprintf(f.progress, "fork: %s\n", step.what)
		if err := step.do(ctx, dir); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", step.what, err), os.RemoveAll(dir))
		}
	}
	return nil
}

// write writes the files, and lends the fork this repository's tools: it would need minutes to build
// the same. Their stamp comes along and says that. A new build makes new files.
func (f *fork) write(ctx context.Context, dir string) error {
	for file, text := range f.files {
		mode := os.FileMode(0o644)
		if strings.HasPrefix(text, "#!") {
			mode = 0o755
		}
		full := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(full, []byte(text), mode); err != nil {
			return err
		}
	}
	tools := filepath.Join(f.from.root, ".local/bin")
	if _, err := os.Stat(filepath.Join(tools, "stamp")); err != nil {
		return nil // nothing was built, or not all of it
	}
	const script = `mkdir -p .local/bin && cd "$1" && for tool in *; do
		[[ ! -f $tool || $tool == "$2" ]] || ln "$tool" "$3/$tool" 2>/dev/null || cp "$tool" "$3"; done`
	_, err := output(ctx, dir, "bash", "-c", script, "", tools, foo.name, filepath.Join(dir, ".local/bin"))
	return err
}

func (f *fork) generate(ctx context.Context, dir string) error {
	_, err := output(ctx, dir, filepath.Join(dir, "hack/update-codegen.sh"))
	return err
}

// compile compiles all packages and their tests, and links nothing. go vet would look at each package
// that they use, too: for the first fork on a machine, that takes minutes.
func compile(ctx context.Context, dir string) error {
	for _, module := range []string{".", "test"} {
		if _, err := output(ctx, dir, "go", "-C", module, "list", "-export", "-test", "./..."); err != nil {
			return err
		}
	}
	return nil
}

// commit makes the fork a repository of its own, after a last check of all its files. The message
// has the version and the command, which are needed to take over later improvements.
func (f *fork) commit(ctx context.Context, dir string) error {
	version, err := output(ctx, f.from.root, "git", "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	changed, err := output(ctx, f.from.root, "git", "status", "--porcelain", "--untracked-files=no")
	if err != nil {
		return err
	}
	if changed != "" {
		version += " with changes that are not committed"
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"}} {
		if _, err := output(ctx, dir, "git", args...); err != nil {
			return err
		}
	}
	ignored, err := output(ctx, dir, "git", "ls-files", "--others", "--ignored", "--exclude-standard",
		"--", ":!.local")
	if err == nil && ignored != "" {
		err = fmt.Errorf("git ignores files of the fork: git check-ignore -v says why\n%s", ignored)
	}
	if err != nil {
		return err
	}
	made, err := readFiles(ctx, dir)
	if err != nil {
		return err
	}
	if err := unclean(leftovers(made.files, f.old, f.names)); err != nil {
		return err
	}
	message := fmt.Sprintf("Fork %s\n\nIt was made from %s, commit\n%s, by\n\n    %s\n",
		f.names.kind, foo.module, version, strings.Join(f.command, " "))
	args := []string{"commit", "-q", "-m", message}
	if _, err := output(ctx, dir, "git", "var", "GIT_COMMITTER_IDENT"); err != nil {
		args = append([]string{"-c", "user.name=" + f.names.name,
			"-c", "user.email=" + f.names.name + "@localhost"}, args...)
	}
	_, err = output(ctx, dir, "git", args...)
	return err
}

// output runs a command and returns what it prints, without the last newline. hack/env of this
// repository starts it, so nothing that a user has set steers it: that of a fork knows nothing of git.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	script, err := filepath.Abs("hack/env")
	if err != nil {
		return "", err
	}
	c := exec.CommandContext(ctx, script, append([]string{name}, args...)...)
	c.Dir = dir
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s%s", filepath.Base(name), strings.Join(args, " "), err,
			stdout.String(), stderr.String())
	}
	return strings.TrimRight(stdout.String(), "\n"), nil
}
