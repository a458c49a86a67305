package main

import (
	"flag"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/sample-controller/internal/testing/cleanup"
	"example.com/sample-controller/internal/testing/freeport"
	"example.com/sample-controller/internal/testing/must"
)

var (
	forkSome = flag.Bool("fork", false, "fork two kinds, and run the forks' tests; takes minutes")
	forkAll  = flag.Bool("fork-all", false, "fork all kinds that are not refused; takes longer")
)

// at runs a command in a folder. An error fails the test.
func at(t *testing.T, folder, command string) string {
	t.Helper()
	printed := must.Get(output(t.Context(), folder, "bash", "-c", command))(t)
	return printed
}

// forkInto makes a fork in a new folder. With -trimpath, go uses what it has compiled in other
// folders.
func forkInto(t *testing.T, values map[string]string) (folder string) {
	t.Helper()
	t.Setenv("HACK_GOFLAGS", "-trimpath")
	folder = filepath.Join(t.TempDir(), "fork")
	values["dir"] = folder
	must.Do(t, run(t.Context(), ".", arguments(values), io.Discard))
	return folder
}

func TestForkedRepositoriesWork(t *testing.T) {
	if !*forkSome {
		t.Skip("needs -fork: it takes minutes")
	}
	tests := map[string]map[string]string{
		"Widget": {"kind": "Widget", "module": "github.com/acme/widgets",
			"group": "widgets.acme.dev", "version": "v1", "name": "widget-operator", "short": "wdg",
			"with": "all"},
		"DNSRecord": {"kind": "DNSRecord", "module": "github.com/Acme/DNS",
			"group": "dns-records.acme.dev", "plural": "dnsrecordset"},
		"HTTPCheck": checks(),
	}
	for kind, values := range tests {
		t.Run(kind, func(t *testing.T) {
			folder := forkInto(t, values)
			speaksOfItself(t, folder)
			leadsSomewhere(t, folder)
			claimsNothing(t, folder)
			suite := `-run "^(TestExample.*|TestScaled.*|TestDeletedDeploymentComesBack)$"`
			if values["from"] != "" { // all of it, for another meaning
				applyChange(t, folder)
				at(t, folder, "hack/update-codegen.sh && git add -A")
				suite = ""
			}
			at(t, folder, `HACK_GOFLAGS="-trimpath -short" hack/test unit && go test -short ./...`)
			if plural := values["plural"]; plural != "" { // the generators would guess another one
				at(t, folder, "hack/update-codegen.sh verify")
				at(t, folder, `grep -q 'Resource: "`+plural+`"' pkg/generated/informers/externalversions/*/*/*.go`)
			}
			at(t, folder, "go build .")
			at(t, folder, "git diff --exit-code && test -z \"$(git ls-files --others --exclude-standard)\"")
			down := must.Get(cleanup.Prepare(folder, "hack/cluster", "down", "fork"))(t)
			t.Cleanup(down)
			at(t, folder, `hack/cluster up fork && make -s build &&
				export KUBECONFIG=$PWD/.local/clusters/fork/kubeconfig.yaml &&
				go -C test test ./conformance -v -patience "${HACK_PATIENCE:-3m}" `+suite+` |
				tee /dev/stderr | awk '/^--- PASS/ {n++} /^--- FAIL/ {n = -100} END {exit n < 3}' &&
				HACK_REGISTRY=`+freeport.Address(t)+` hack/demo fork`)
			knowsBuiltinNames(t, folder)
		})
	}
}

// speaksOfItself searches for old names, and shares no code with the program's own search. It
// allows words of Kubernetes in generated files.
func speaksOfItself(t *testing.T, folder string) {
	t.Helper()
	found := at(t, folder, `git grep -n -i -e foo -e website -e sample-\\?controller -e example.com/sample \
		-e tutorial -e forking -e changelog -e api-approved -- ':!*.sum' |
		grep -v -e 'reduces memory footprint' -e 'in foo.example.com/CamelCase' \
			-e 'again with .--from website' || :`)
	if found != "" {
		t.Errorf("the fork has old names:\n%s", found)
	}
}

// claimsNothing checks that the pages say nothing of what was measured in another repository.
func claimsNothing(t *testing.T, folder string) {
	t.Helper()
	found := at(t, folder, `git grep -n -e '✓ |' -e '[0-9] MiB |' -e 'measured here' -e ' | 20[0-9][0-9]-' \
		-e 'histories take' -e 'inputs per second' -- '*.md' || :`)
	if found != "" {
		t.Errorf("the fork claims what nobody has measured:\n%s", found)
	}
}

// leadsSomewhere checks that the links in all pages lead to files.
func leadsSomewhere(t *testing.T, folder string) {
	t.Helper()
	for file := range strings.Lines(at(t, folder, "git ls-files '*.md'")) {
		file = strings.TrimSpace(file)
		text := must.Get(os.ReadFile(filepath.Join(folder, file)))(t)
		for _, target := range link.FindAllStringSubmatch(string(text), -1) {
			to := filepath.Join(folder, path.Dir(file), target[1])
			if _, err := os.Stat(to); err != nil && !strings.Contains(target[1], "://") {
				t.Errorf("%s: %s leads nowhere", file, target[1])
			}
		}
	}
}

// knowsBuiltinNames asks a control plane whether builtin.txt is complete.
func knowsBuiltinNames(t *testing.T, folder string) {
	t.Helper()
	served := at(t, folder, `.local/bin/kubectl --kubeconfig .local/clusters/fork/kubeconfig.yaml \
		--cache-dir .local/cache api-resources --no-headers | grep -v acme.dev`)
	known, groups := builtinNames(), builtinGroups()
	for line := range strings.Lines(served) {
		fields := strings.Fields(line)
		version := len(fields) - 3 // short names may stand before it; namespaced and kind follow
		names := append(strings.Split(strings.Join(fields[1:version], ""), ","), fields[0],
			strings.ToLower(fields[version+2]))
		for _, name := range names {
			if name != "" && !known[name] {
				t.Errorf("%s is missing from builtin.txt: %s", name, line)
			}
		}
		group, _, _ := strings.Cut(fields[version], "/")
		if strings.Contains(group, ".") && !groups[group] {
			t.Errorf("group %s is missing from builtin.txt", group)
		}
	}
}

func TestAllKindsBuild(t *testing.T) {
	if !*forkAll {
		t.Skip("needs -fork-all: it takes many minutes")
	}
	for _, test := range kinds {
		if test.refused != "" {
			continue
		}
		t.Run(test.kind, func(t *testing.T) {
			at(t, forkInto(t, map[string]string{"kind": test.kind, "module": "github.com/acme/things",
				"group": "things.acme.dev", "version": "v1"}), "go test ./...")
		})
	}
	for _, group := range []string{"time", "cache", "apps", "http", "v1", "foo", "a-b", "errors"} {
		t.Run(group, func(t *testing.T) {
			at(t, forkInto(t, map[string]string{"kind": "Person", "plural": "people",
				"module": "acme.dev/" + group, "group": group + ".acme.dev"}), "go test ./...")
		})
	}
}

// This fork has no generator, so it fails after its files are written.
func TestNothingStaysBehindAFailure(t *testing.T) {
	folder := t.TempDir()
	dir := filepath.Join(folder, "new")
	f := &fork{from: &repository{root: folder}, files: map[string]string{"a": "b"},
		modes: map[string]os.FileMode{"a": 0o644}, progress: io.Discard}
	for _, exists := range []bool{false, true} {
		if exists {
			must.Do(t, os.Mkdir(dir, 0o755))
		}
		err := f.create(t.Context(), dir)
		if err == nil || !strings.Contains(err.Error(), "generating code") {
			t.Errorf("got %v, want an error in generating code", err)
		}
		entries, err := os.ReadDir(folder)
		if err != nil || exists && len(entries) != 1 || !exists && len(entries) != 0 {
			t.Errorf("left behind: %v (%v)", entries, err)
		}
	}
}

// Each part alone, none and all of them: a fork has what it is asked for, and nothing in it speaks
// of the rest.
func TestForkHasItsParts(t *testing.T) {
	root := thisRepository(t)
	type parts struct{ from, with string }
	tests := []parts{{"", ""}, {"", "all"}, {"website", ""}, {"website", "all"}}
	for _, p := range partNames() {
		tests = append(tests, parts{"", p})
		if slices.Contains(exampleParts, p) {
			tests = append(tests, parts{"website", p})
		}
	}
	for _, test := range tests {
		t.Run(test.from+"+"+test.with, func(t *testing.T) {
			from := must.Get(root.template(test.from))(t)
			out := must.Get(omit(from, strings.Fields(test.with)))(t)
			f := must.Get(newFork(from, from.newNames(namesOf(t, "HTTPCheck", "")), out))(t)
			for file, text := range f.files {
				if out.has(file) {
					t.Errorf("%s is there", file)
				}
				if found := badArticle.FindString(text); found != "" {
					t.Errorf("%s says %q", file, found)
				}
				if found := oldMeaning.FindString(text); found != "" && knowsNoMeaning.MatchString(file) {
					t.Errorf("%s knows the old meaning: %q", file, found)
				}
			}
			f.scriptsWork(t, root.files["hack/test"])
			if own, _ := f.size(); test.with == "" && (own.files > 100 || own.lines > 10700) {
				t.Errorf("a small fork has %+v", own)
			}
		})
	}
}

var (
	badArticle = regexp.MustCompile(`\b[aA]\s+(?:[#/*]+ )?HTTPCheck\b.*`)
	// What is not about one kind does not know what a Foo or a Website is, nor that it may be forked.
	knowsNoMeaning = regexp.MustCompile(`^internal/(?:[^t]|testing/[^ms])|^\.github/`)
	oldMeaning     = regexp.MustCompile(`(?i)\bdeploymentName\b|\bStatus\.Replicas\b|website|you forked`)

	functions = regexp.MustCompile(`(?m)^([\w-]+)\(\) `)
	phonyTest = regexp.MustCompile(`(?m)^\.PHONY:.* test(?: |$)`)
	folders   = regexp.MustCompile(`(?m)^\s+go (?:-C (\S+) )?(?:test|vet|run|build) .*?\./([a-z][\w/-]*)`)
)

// scriptsWork checks that hack/test calls only functions that it has, and that no script names a
// folder that is not there. whole is hack/test of this repository.
func (f *fork) scriptsWork(t *testing.T, whole string) {
	t.Helper()
	text := f.files["hack/test"]
	for _, function := range functions.FindAllStringSubmatch(whole, -1) {
		calls := regexp.MustCompile(`(?m)^[^#\n]*(?:^|[;&|(]|^ +)\s*` + function[1] + `(?:\s|$)`)
		if !strings.Contains(text, "\n"+function[1]+"() ") && calls.MatchString(text) {
			t.Errorf("hack/test calls %s, which is gone", function[1])
		}
	}
	steps := stepNames.FindAllString(strings.Join(stepLists.FindAllString(text, -1), " "), -1)
	for _, function := range functions.FindAllStringSubmatch(text, -1) {
		step, isStep := strings.CutPrefix(function[1], "step_")
		if isStep && !slices.Contains(steps, step) {
			t.Errorf("no list of hack/test has the step %s", step)
		}
	}
	if !phonyTest.MatchString(f.files["Makefile"]) {
		t.Error("make test does nothing: the folder test is there")
	}
	parse := exec.Command("bash", "-n")
	parse.Stdin = strings.NewReader(text)
	if output, err := parse.CombinedOutput(); err != nil {
		t.Errorf("hack/test: %v\n%s", err, output)
	}
	for _, script := range []string{"hack/test", "Makefile", ".github/workflows/test.yaml"} {
		for _, found := range folders.FindAllStringSubmatch(f.files[script], -1) {
			folder := path.Join(found[1], strings.TrimSuffix(found[2], "/..."))
			if !slices.ContainsFunc(slices.Collect(maps.Keys(f.files)), func(file string) bool {
				return strings.HasPrefix(file, folder+"/")
			}) {
				t.Errorf("%s names %s: %s", script, folder, found[0])
			}
		}
	}
}

func TestSameNamesChangeNothing(t *testing.T) {
	from := thisRepository(t)
	f := must.Get(newFork(from, from.names, nothing(t)))(t)
	for file, text := range from.kept(nothing(t), from.names.protected()) {
		if f.files[file] != text && file != "NEXT.md" { // it has a table of its own
			t.Errorf("%s has changed", file)
		}
	}
}
