package hack

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/setting"
)

// TestMain keeps the folders of the tests out of this repository: hack/env has go's temporary files in
// .local, t.TempDir, too.
func TestMain(m *testing.M) {
	os.Unsetenv("GOTMPDIR")
	m.Run()
}

// begins is how a script begins with the prologue, from whatever folder it is called.
var begins = regexp.MustCompile(`\nset -E?euo pipefail\n+(unset platform\n.*\n)?` +
	`\. "\$\(dirname "\$\{BASH_SOURCE\[0\]\}"\)/([./]*/hack/)?env"\n`)

// Whatever the reader has set, a command does the same: each begins with hack/env. What that takes
// away is tested in settings_test.go.
func TestEachCommandBeginsWithThePrologue(t *testing.T) {
	scripts := strings.Fields(output(t, "git", "grep", "-lE", "^#!.*sh$", "--", ":!*_test.go", ":!hack/env"))
	for _, file := range scripts {
		if text := must.Get(os.ReadFile("../" + file))(t); !begins.Match(text) {
			t.Errorf("%s does not begin with the prologue, hack/env", file)
		}
	}
	makefiles := output(t, "bash", "-c", "cat Makefile */*.mk")
	if !strings.Contains(makefiles, "\nSHELL := hack/env\n") || len(scripts) < 10 {
		t.Errorf("looked at %q, and at the SHELL of the Makefile", scripts)
	}
	if strings.Contains(makefiles, "?=") {
		t.Error("a variable of the environment steers make: write := in place of ?=")
	}
}

// A copy of the repository works, or says what to do.
func TestCopiesOfTheRepository(t *testing.T) {
	setting.Long(t)
	larger := t.TempDir()
	output(t, "bash", "-c", `cd "$0" && git init -q && git -c user.name=a -c user.email=a@localhost \
		commit -q --allow-empty -m a`, larger)
	const files = `git ls-files -z | xargs -0 tar -cf - | tar -xf - -C "$0"`
	const archive = `mkdir "$0" && ` + files
	for _, copied := range []struct{ in, how, fork string }{
		{t.TempDir(), archive, "clone the repository, and run this there"},
		{larger, archive, "clone the repository, and run this there"},
		{t.TempDir(), `git clone -q . "$0" && ` + files, "that is the example of this repository"},
	} {
		folder := filepath.Join(copied.in, "copy")
		output(t, "bash", "-c", copied.how, folder)
		printed, problem, err := script(t, "", "make", "-C", folder, "-n", "build")
		noCommit := strings.Contains(printed, ".gitCommit='")
		if err != nil || problem != "" || noCommit != (copied.how == archive) {
			t.Errorf("make build: got %v, %s%s", err, problem, printed)
		}
		command := exec.Command("go", "-C", "hack", "run", "./fork", "--module", "example.com/b",
			"--group", "b.example.com", "--kind", "Foo", filepath.Join(t.TempDir(), "b"))
		command.Dir = folder
		command.Env = append(os.Environ(), "GIT_DIR=/none", "GIT_INDEX_FILE=/none", "CDPATH=.:/")
		if text, err := command.CombinedOutput(); err == nil || !strings.Contains(string(text), copied.fork) {
			t.Errorf("hack/fork: got %v, %s; want %q", err, text, copied.fork)
		}
	}
}

// The README, the tests in CI, and the newest control plane have the versions of Kubernetes in
// hack/versions.
func TestVersionsAreTheSameEverywhere(t *testing.T) {
	read := func(file, pattern string) (found []string) {
		text := string(must.Get(os.ReadFile(file))(t))
		for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			found = append(found, regexp.MustCompile(`1\.\d+`).FindAllString(match[1], -1)...)
		}
		return found
	}
	const workflow = "../.github/workflows/test.yaml"
	want := read("versions", `(?m)^v(.*)`)
	newest := read("tools/go.mod", `k8s.io/kubernetes v(\S+)`)
	others := read(workflow, `kubernetes: \[("1.*)\]`)
	for where, got := range map[string][]string{
		"the README":                   read("../README.md", `\| main \|.*\|(.*)\|`),
		"the job kind":                 read(workflow, `kubernetes: \[(v1.*)\]`),
		"the job kubernetes and tools": append(others, newest...),
	} {
		if len(want) < 3 || !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", where, got, want)
		}
	}
}
