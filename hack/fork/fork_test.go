package main

import (
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/process"
	"example.com/sample-controller/internal/testing/setting"
)

// TestMain goes to the root, as main does. And it keeps the folders of the tests out of this
// repository: hack/env has go's temporary files in .local, t.TempDir, too, and a fork must not be
// written there.
func TestMain(m *testing.M) {
	os.Unsetenv("GOTMPDIR")
	if err := os.Chdir("../.."); err != nil {
		panic(err)
	}
	m.Run()
}

// at runs a command in a folder. An error fails the test.
func at(t *testing.T, folder, command string) string {
	t.Helper()
	return must.Get(output(t.Context(), folder, "bash", "-c", command))(t)
}

// All tests run in the fork of the Website, which has them for more than one kind of object. Those of
// the others are the tests of this repository in other names, so the short ones are enough, and the demo
// for one of them.
func TestForkedRepositoriesWork(t *testing.T) {
	setting.Long(t)
	// Without -trimpath, Go would compile each package of a fork anew in each folder.
	t.Setenv("HACK_GOFLAGS", strings.TrimSpace(os.Getenv("HACK_GOFLAGS")+" -trimpath"))
	const short = "go test -short ./..."
	tests := map[string]struct {
		values map[string]string
		test   string
	}{
		"Widget": {map[string]string{"module": "github.com/acme/widgets", "group": "widgets.acme.dev",
			"version": "v1", "name": "widget-operator", "short": "wdg"}, short},
		"News": {map[string]string{"module": "github.com/Acme/Press", "group": "press-releases.acme.dev",
			"plural": "newsitems"}, // the generators would guess another one
			short + ` && grep -q 'Resource: "newsitems"' pkg/generated/informers/externalversions/*/*/*.go`},
		"HTTPCheck": {map[string]string{"module": "github.com/acme/checks", "group": "checks.acme.dev",
			"from": "website"}, "env -u HACK_TESTS hack/test"},
	}
	for kind, test := range tests {
		t.Run(kind, func(t *testing.T) {
			t.Parallel() // they mostly wait
			folder := filepath.Join(t.TempDir(), "fork")
			test.values["kind"], test.values["dir"] = kind, folder
			must.Do(t, run(t.Context(), ".", arguments(test.values), io.Discard))
			speaksOfItself(t, folder)
			at(t, folder, "make -s help-all")
			at(t, folder, "git diff --exit-code && test -z \"$(git ls-files --others --exclude-standard)\"")
			at(t, folder, test.test)
			if kind == "News" {
				return // nothing but its names is unlike Widget
			}
			if kind == "Widget" {
				takesLaterVersions(t, folder, test.values)
			}
			down := must.Get(process.Prepare(folder, "hack/cluster", "down", "fork"))(t)
			t.Cleanup(down)
			at(t, folder, `make -s build && hack/cluster up fork && HACK_REGISTRY=`+must.Get(process.FreeAddress())(t)+` hack/demo fork`)
			if kind == "Widget" {
				knowsBuiltinNames(t, folder)
			}
		})
	}
}

// takesLaterVersions runs the commands in docs/forking.md. They take over what is new here, and keep
// what is new in the fork.
func takesLaterVersions(t *testing.T, folder string, values map[string]string) {
	t.Helper()
	page := string(must.Get(os.ReadFile("docs/forking.md"))(t))
	commands := regexp.MustCompile("(?s)```sh\n(git branch upstream.*?|git fetch .*?)```").FindAllStringSubmatch(page, -1)
	if len(commands) != 2 {
		t.Fatalf("docs/forking.md has %d blocks of commands for a fork, want 2", len(commands))
	}
	original := filepath.Join(t.TempDir(), "original")
	at(t, ".", "git clone -q . "+original)
	const me = "export GIT_{AUTHOR,COMMITTER}_{NAME,EMAIL}=me@localhost && "
	at(t, folder, me+"echo '// Ours.' >>controller.go && git commit -qam Ours && "+commands[0][1])
	at(t, original, me+`sed -i.bak '1s/^/\/\/ Theirs: a Foo.\n/' writes.go &&
		rm writes.go.bak && git commit -qam Theirs`)
	values["dir"] = folder + "-new"
	must.Do(t, run(t.Context(), original, arguments(values), io.Discard))
	merge := strings.ReplaceAll(commands[1][1], "../widgets-new", values["dir"])
	merge = regexp.MustCompile(`(?m)^make .*$`).ReplaceAllString(merge, "go list -export -test .")
	at(t, folder, me+"unset GIT_CONFIG_COUNT; set -e\n"+merge) // as a reader types it, without hack/env
	if got := at(t, folder, "head -n 1 writes.go && tail -n 1 controller.go && git status --short"); got !=
		"// Theirs: a Widget.\n// Ours." {
		t.Errorf("the fork has %q", got)
	}
}

// speaksOfItself searches for old names, and shares no code with the program's own search. It
// allows words of Kubernetes in generated files. The links of the pages lead to files.
func speaksOfItself(t *testing.T, folder string) {
	t.Helper()
	found := at(t, folder, `git grep -n -i -e foo -e website -e sample-\\?controller -e example.com/sample \
		-e tutorial -e forking -e changelog -e api-approved -- ':!*.sum' ':!explore' |
		grep -v -e 'reduces memory footprint' -e 'in foo.example.com/CamelCase' -e 'again with .--from website' \
			-e '"\?example.com/sample-controller/explore' || :`)
	if found != "" {
		t.Errorf("the fork has old names:\n%s", found)
	}
	link := regexp.MustCompile(`\]\(([^)\s#:]+)\)`)
	for file := range strings.FieldsSeq(at(t, folder, "git ls-files '*.md'")) {
		text := must.Get(os.ReadFile(filepath.Join(folder, file)))(t)
		for _, target := range link.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(folder, path.Dir(file), target[1])); err != nil {
				t.Errorf("%s: %s leads nowhere", file, target[1])
			}
		}
	}
}

// knowsBuiltinNames compares builtinNames with what a control plane serves.
func knowsBuiltinNames(t *testing.T, folder string) {
	t.Helper()
	known := builtinNames()
	for line := range strings.Lines(at(t, folder, `.local/bin/kubectl --kubeconfig \
		.local/clusters/fork/kubeconfig.yaml --cache-dir .local/cache api-resources --no-headers | grep -v acme.dev`)) {
		fields := strings.Fields(line)
		kind := strings.ToLower(fields[len(fields)-1])
		for _, name := range append(strings.Split(strings.Join(fields[1:len(fields)-3], ""), ","), fields[0], kind) {
			if name != "" && !known[name] {
				t.Errorf("builtinNames lacks %s: %s", name, line)
			}
		}
	}
}

// This fork has no generator, so it fails after its files are written.
func TestNothingStaysBehindAFailure(t *testing.T) {
	folder := t.TempDir()
	dir := filepath.Join(folder, "new")
	f := &fork{from: &repository{root: folder},
		files: map[string]string{"a": "b"}, progress: io.Discard}
	err := f.create(t.Context(), dir)
	if err == nil || !strings.Contains(err.Error(), "generating code") {
		t.Errorf("got %v, want an error in generating code", err)
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v (%v)", entries, err)
	}
}

// A fork is small.
func TestForksAreSmall(t *testing.T) {
	from := thisRepository(t)
	badArticle := regexp.MustCompile(`\b[aA]\s+(?:[#/*]+ )?HTTPCheck\b.*`)
	for fromExample, most := range map[bool][2]int{false: {80, 9000}, true: {90, 10100}} {
		f := must.Get(newFork(from, namesOf(t, "HTTPCheck", ""), fromExample))(t)
		if files, lines := f.size(); files > most[0] || lines > most[1] {
			t.Errorf("from the example %t: a fork has %d files with %d lines", fromExample, files, lines)
		}
		for file, text := range f.files {
			if found := badArticle.FindString(text); found != "" {
				t.Errorf("%s says %q", file, found)
			}
		}
	}
}
