package hack

import (
	"fmt"
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

// fake stands in for each program that a command calls. It records how it was called, and does what
// the command cannot do without.
const fake = `#!/bin/bash
case "${0##*/} $*" in
"go env GOHOSTOS"*) printf 'linux\namd64\n' ;;
"go list"*Standard*) printf 'a/package\n' ;;
program*) echo Starting the workers ;;
*" current-context") echo here ;;
go*" tool -n "*) echo true ;;
*"get foos.v1alpha1.samplecontroller.k8s.io") exit ;; # as often as it takes
esac
case "${0##*/}" in program | wasm) exit ;; esac
{ printf '%s' "${0##*/}" && printf ' %q' "$@" && echo && echo "declare -x IN=$PWD" && declare -Fx &&
  declare -px; } >>"$RECORD"
previous=
for argument; do
  [[ $previous != -o || -d $argument || $argument == */ || $argument -ef $0 ]] ||
    { mkdir -p "$(dirname "$argument")" && cp "$0" "$argument"; }
  previous=$argument
done
`

// TestMain keeps the folders of the tests out of this repository: hack/env has go's temporary files in
// .local, t.TempDir, too.
func TestMain(m *testing.M) {
	os.Unsetenv("GOTMPDIR")
	m.Run()
}

// scripts are the commands that a reader may type, with the arguments that lead furthest.
var scripts = []string{
	".ci/run", "docs/tutorial/assemble 14-versions", "docs/tutorial/14-versions/forget v1alpha1",
	"docs/tutorial/14-versions/stored",
	"examples/conformance", "hack/cluster build", "hack/cluster up door", "hack/cluster empty door",
	"hack/cluster down door", "hack/cluster check door", "hack/cluster kubeconfig door",
	"hack/compile 'a program' .local/a -- .", "hack/demo", "hack/e2e here true",
	"hack/env go build .", "hack/env -c 'git status'", "hack/faults-all", "hack/fuzz 0",
	"hack/install example.com/a@v1", "hack/lint", "hack/release v1.2.3", "hack/test", "hack/test all",
	"hack/update-codegen.sh", "hack/vulnerabilities",
}

// hostileVariables are what readers have in their environment, according to reports. @ is a folder
// with a file for each of these that names one.
const hostileVariables = `BASHOPTS=nullglob:failglob:nocasematch BASH_ENV=@/bashrc BENCH=x
BASH_FUNC_cd%%=()_{_builtin_cd_"$1"_&&_ls;_} CDPATH=.:@ CLICOLOR_FORCE=1 CLUSTER=production
COMMIT=x CURL_HOME=@ DEPTH=9 FORCE_COLOR=1 GIT_DIR=@/git GIT_INDEX_FILE=@/index
GIT_WORK_TREE=@ GO111MODULE=off GOARCH=mips GOBIN=@ GOEXPERIMENT=none
GOFLAGS=-mod=vendor GOOS=plan9 GOROOT=@ GOTMPDIR=@/no GOWORK=@/go.work
GREP_OPTIONS=--color=always IMAGE=x IMAGEFLAGS=x JOBS=x KUBECACHEDIR=@/no KUBECTL_EXTERNAL_DIFF=x
KUBERC=@/kuberc LANGUAGE=de LC_ALL=C.UTF-8 LDFLAGS=x LENSFLAGS=x MAIN=1 MAKEFLAGS=-j8
PARTS=9 PATIENCE=x PLATFORMS=x POSIXLY_CORRECT=1 PROGRAM=x REGISTRY=x REQUIRED=true SERVER=x
SHELLOPTS=noglob:noclobber SOAK=x TAR_OPTIONS=-x TMPDIR=@/no VERSION=22.04_(Jammy) BUILT=true
http_proxy=http://127.0.0.1:1 root=@ name=x command=x target=plan9/mips`

// inert are the variables of these that programs may see, because nothing reads them.
var inert = regexp.MustCompile(`(?m)^declare -r?x (BENCH|CLUSTER|COMMIT|CURL_HOME|DEPTH|IMAGE|IMAGEFLAGS|JOBS|` +
	`LDFLAGS|LENSFLAGS|MAIN|PARTS|PATIENCE|PLATFORMS|PROGRAM|REGISTRY|REQUIRED|SERVER|SOAK|VERSION|` +
	`BUILT|BASHOPTS|SHELLOPTS|http_proxy|root|name|command|target|_|OLDPWD|SHLVL|HOME|RECORD|TMPDIR)\b.*\n`)

// generated are words that differ from run to run, and what make says in the reader's language.
var generated = regexp.MustCompile(`(?m)^make: \*\*\* .*|/tmp\.\w+|\.\w{6}\b|\.[0-9]+\b|\b[0-9]{2,}\b`)

// A command calls the same programs, with the same arguments, environment and folder, whatever the
// reader has set. The programs are fakes. A command without hack/env, or a setting that hack/env
// forgets, fails here.
func TestCommandsDoTheSameWhateverTheReaderHasSet(t *testing.T) {
	setting.Long(t)
	text := output(t, "bash", "-c", "cat Makefile */*.mk")
	commands := slices.Clone(scripts)
	for _, target := range regexp.MustCompile(`(?m)^([a-z][a-z-]+):.* ##? `).FindAllStringSubmatch(text, -1) {
		commands = append(commands, "make "+target[1])
	}
	for file := range strings.Lines(output(t, "git", "grep", "-lE", "^#!.*bash$", "--", ":!*_test.go")) {
		file = strings.TrimSpace(file)
		if !slices.ContainsFunc(scripts, func(command string) bool {
			return strings.Fields(command)[0] == file
		}) {
			t.Errorf("%s is not tried here", file)
		}
	}
	files := t.TempDir()
	copyFiles(t, files)
	must.Do(t, os.WriteFile(files+"/fake", []byte(fake), 0o755))
	for _, command := range commands {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			clean, hostile := calls(t, files, command, false), calls(t, files, command, true)
			if !strings.Contains(clean, "go env GOHOSTOS") {
				t.Errorf("hack/env was not run: %s", clean)
			}
			if clean != hostile {
				t.Error(difference(clean, hostile))
			}
		})
	}
}

// difference returns the first line that differs, with the call that it belongs to.
func difference(a, b string) string {
	call := ""
	as, bs := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(as), len(bs)) {
		if as[i] != bs[i] {
			return fmt.Sprintf("in %q:\n%s\nbecame\n%s", call, as[i], bs[i])
		}
		if !strings.HasPrefix(as[i], "declare") {
			call = as[i]
		}
	}
	return fmt.Sprintf("%s\n\nbecame\n\n%s", a, b)
}

// calls runs a command in a copy of the files, and returns which programs it calls, and how,
// and what it prints.
func calls(t *testing.T, files, line string, hostile bool) string {
	t.Helper()
	dir := t.TempDir()
	root, bin, home := dir+"/x", dir+"/bin", dir+"/home"
	must.Do(t, filepath.WalkDir(files, func(file string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() { // a program that is being written could not be run
			link(t, file, root+strings.TrimPrefix(file, files))
		}
		return err
	}))
	for _, program := range []string{"go", "git", "kubectl", "curl", "make", "gofmt", "shellcheck",
		"apt-get", "dpkg-deb", "chromium", "prometheus", "docker", "tar"} {
		link(t, files+"/fake", bin+"/"+program)
	}
	for _, program := range []string{"kubectl", "kwokctl", "golangci-lint", "actionlint", "govulncheck",
		"controller-gen", "lens", "sample-controller", "registry", "examples/controller-runtime"} {
		link(t, files+"/fake", root+"/.local/bin/"+program)
	}
	must.Do(t, os.Mkdir(home, 0o755))
	must.Do(t, os.WriteFile(dir+"/.git", nil, 0o644))
	line = strings.Replace(line, "make ", must.Get(exec.LookPath("make"))(t)+" ", 1)
	command := exec.Command("timeout", "20", "bash", "--norc", "-c", line+" </dev/null")
	command.Dir = root
	command.Env = []string{"HOME=" + home, "PATH=" + bin + ":/usr/bin:/bin", "RECORD=" + dir + "/record",
		"KUBECONFIG=" + root + "/go.mod"}
	if hostile {
		command.Args = append(command.Args[:2], append([]string{"env"}, hostileEnv(t, home)...)...)
		command.Args = append(command.Args, "bash", "--norc", "-c", line+" </dev/null")
	}
	// A file, because a pipe is read until the last process of the command has closed it.
	out := must.Get(os.Create(dir + "/printed"))(t)
	command.Stdout, command.Stderr = out, out
	err := command.Run()
	printed := must.Get(os.ReadFile(out.Name()))(t)
	record, _ := os.ReadFile(dir + "/record") // there may be no calls
	all := fmt.Sprintf("%s%s%v", inert.ReplaceAll(record, nil), printed, err)
	all = generated.ReplaceAllString(strings.ReplaceAll(all, dir, "DIR"), "")
	return strings.ReplaceAll(all, "DIR/x/.local/tmp", "/tmp")
}

// copyFiles copies what the commands read themselves. What they let other programs read is left out.
func copyFiles(t *testing.T, to string) {
	t.Helper()
	output(t, "bash", "-c", `mkdir -p "$0" && { git ls-files -z Makefile '*.mk' docs/lint .ci hack go.mod go.sum '*.go' \
		artifacts docs/tutorial/assemble docs/tutorial/08-errors docs/tutorial/14-versions examples/conformance \
		examples/website/artifacts ':!*_test.go' ':!hack/fork' ':!*/*.go' &&
		git ls-files -z pkg/apis examples/website/pkg/apis docs/tutorial/14-versions/pkg/apis; } |
		xargs -0 tar -cf - | tar -xf - -C "$0"`, to)
}

func link(t *testing.T, from, to string) {
	t.Helper()
	must.Do(t, os.MkdirAll(filepath.Dir(to), 0o755))
	must.Do(t, os.Link(from, to))
}

// hostileEnv returns the hostile variables, and writes the files that they name.
func hostileEnv(t *testing.T, dir string) (env []string) {
	t.Helper()
	for name, text := range map[string]string{
		"bashrc": "cd() { echo hostile; }\ngrep() { echo hostile; }\n", "kuberc": "hostile",
		"go.work": "go 1.26\n", "hack/cluster": "hostile", "docs/x": "", "artifacts/x": "", "test/x": "",
	} {
		must.Do(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	for variable := range strings.FieldsSeq(strings.ReplaceAll(hostileVariables, "@", dir)) {
		if strings.HasPrefix(variable, "BASH_FUNC") || strings.HasPrefix(variable, "VERSION") {
			variable = strings.ReplaceAll(variable, "_", " ")
			variable = strings.Replace(variable, "BASH FUNC ", "BASH_FUNC_", 1)
		}
		env = append(env, variable)
	}
	return env
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
		// go itself is started by the reader, with the reader's settings for go.
		command.Env = append(os.Environ(), slices.DeleteFunc(hostileEnv(t, t.TempDir()), func(v string) bool {
			return strings.HasPrefix(v, "GO") || strings.HasPrefix(v, "TMPDIR")
		})...)
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
		"docs/reliability.md":          read("../docs/reliability.md", `(?m)^\| this repository's,.* v(1\S+)`),
	} {
		if len(want) < 3 || !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", where, got, want)
		}
	}
}
