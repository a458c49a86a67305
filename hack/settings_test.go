package hack

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"example.com/sample-controller/internal/testing/must"
)

// settings are what readers have set, according to reports, and a command whose result each of them
// changes. HOME is a folder with the files.
var settings = []struct{ name, file, text, environment, command string }{
	{"another folder in CDPATH", "dir/hack/x", "", "CDPATH=HOME/dir", "cd hack && pwd"},
	{"a cd that lists", "", "", `BASH_FUNC_cd%%=() { builtin cd "$@" && ls; }`, "cd hack"},
	{"functions in BASH_ENV", "rc", "grep() { echo no; }\n", "BASH_ENV=HOME/rc", "grep -c . go.mod"},
	{"patterns must match", "", "", "BASHOPTS=failglob", "echo *.none"},
	{"no patterns", "", "", "SHELLOPTS=noglob", "echo *.mod"},
	{"no file is overwritten", "", "", "SHELLOPTS=noclobber", "echo >HOME/a; echo >HOME/a"},
	{"bash as POSIX has it", "", "", "POSIXLY_CORRECT=1", "shopt -o posix"},
	{"names of nix-shell", "", "", "name=nix out=nix", "echo $name $out"},
	{"another language", "", "", "LC_ALL=C.UTF-8", "echo $LC_ALL"},
	{"colors", "", "", "CLICOLOR_FORCE=1", "echo $CLICOLOR_FORCE"},
	{"options of grep", "", "", "GREP_OPTIONS=-n", "echo $GREP_OPTIONS"},
	{"options of tar", "", "", "TAR_OPTIONS=--list", "tar -cf /dev/null go.mod"},
	{"flags of make", "", "", "MAKEFLAGS=-n", "make -s version"},
	{"no folder for temporary files", "", "", "TMPDIR=HOME/none", "f=$(mktemp) && rm $f && echo yes"},
	{"a proxy", "", "", "http_proxy=http://127.0.0.1:1", "[[ ! $http_proxy || $no_proxy ]] && echo"},

	{"flags of go", "", "", "GOFLAGS=-mod=vendor", "go env GOFLAGS"},
	{"flags of go in a file", ".config/go/env", "GOFLAGS=-mod=vendor\n", "", "go env GOFLAGS"},
	{"another platform", "", "", "GOARCH=arm64", "go env GOARCH"},
	{"another platform in a file", ".config/go/env", "GOOS=plan9\n", "", "go env GOOS"},
	{"a workspace", "go.work", "go 1.26\n", "GOWORK=HOME/go.work", "go list -m"},
	{"no modules", "", "", "GO111MODULE=off", "go list -m"},
	{"another Go", "", "", "GOROOT=HOME", "go list fmt"},
	{"an experiment", "", "", "GOEXPERIMENT=nosuch", "go list fmt"},
	{"no folder to build in", "", "", "GOTMPDIR=HOME/none", "go env GOTMPDIR"},
	{"a clone of another owner", "", "", "", "git status -s"},

	{"a repository of a hook", "", "", "GIT_DIR=HOME/none", "git ls-files go.mod"},
	{"an index of a hook", "", "", "GIT_INDEX_FILE=HOME/none", "git ls-files go.mod"},
	{"ignored files", ".gitconfig", "[core]\nexcludesFile = HOME/all\n", "", "touch new; git status -s new"},
	{"attributes", ".gitconfig", "[core]\nattributesFile = HOME/attributes\n", "", "git config core.attributesFile"},
	{"hooks", ".gitconfig", "[core]\nhooksPath = HOME\n", "", "git rev-parse --git-path hooks"},
	{"ends of lines", ".gitconfig", "[core]\nautocrlf = true\n", "", "git config core.autocrlf"},
	{"templates", ".gitconfig", "[init]\ntemplateDir = HOME\n", "", "git config init.templateDir"},
	{"signatures", ".gitconfig", "[commit]\ngpgSign = true\n", "", "git config commit.gpgSign"},
	{"colors of git", ".gitconfig", "[color]\nui = always\n", "", "git grep -h ^module go.mod"},
	{"numbers of lines", ".gitconfig", "[grep]\nlineNumber = true\n", "", "git grep -h ^module go.mod"},
	{"columns", ".gitconfig", "[grep]\ncolumn = true\n", "", "git grep -h ^module go.mod"},
	{"short status", ".gitconfig", "[status]\nbranch = true\n", "", "git status -s"},
	{"no prefix in diffs", ".gitconfig", "[diff]\nnoprefix = true\n", "", "echo >>go.mod; git diff"},
	{"white space in patches", ".gitconfig", "[apply]\nwhitespace = error\n", "", "git config apply.whitespace"},

	{"a kuberc", ".kube/kuberc", "hostile", "KUBERC=HOME/.kube/kuberc", "echo $KUBERC"},
	{"a program for kubectl diff", "", "", "KUBECTL_EXTERNAL_DIFF=x", "echo $KUBECTL_EXTERNAL_DIFF"},
}

// A setting of the reader changes the result of a command, but not if hack/env runs it.
func TestSettingsOfTheReaderChangeNothing(t *testing.T) {
	for _, setting := range settings {
		t.Run(setting.name, func(t *testing.T) {
			t.Parallel()
			home, variable := t.TempDir(), setting.environment
			repository := repositoryIn(t, home)
			run := func(shell, variable string) string {
				output(t, "git", "-c", "safe.directory=*", "-C", repository, "reset", "-q", "--hard")
				command := exec.Command("env", "-i", "HOME="+home, "PATH="+os.Getenv("PATH"), variable,
					shell, "-c", strings.ReplaceAll(setting.command, "HOME", home))
				command.Dir = repository
				printed, err := command.CombinedOutput()
				return fmt.Sprint(string(printed), err)
			}
			plain, kept := run("bash", "a=b"), run("hack/env", "a=b")
			if setting.file != "" {
				file := filepath.Join(home, setting.file)
				must.Do(t, os.MkdirAll(filepath.Dir(file), 0o755))
				must.Do(t, os.WriteFile(file, []byte(strings.ReplaceAll(setting.text, "HOME", home)), 0o644))
			}
			if setting.name == "a clone of another owner" {
				must.Do(t, os.Chown(repository, 65534, 65534))
			}
			variable = cmp.Or(strings.ReplaceAll(variable, "HOME", home), "a=b")
			if hostile := run("bash", variable); hostile == plain {
				t.Errorf("the setting changes nothing: %s", hostile)
			}
			if hostile := run("hack/env", variable); hostile != kept {
				t.Errorf("got %s, want %s", hostile, kept)
			}
		})
	}
}

// repositoryIn returns a repository with hack/env in a folder.
func repositoryIn(t *testing.T, folder string) string {
	t.Helper()
	root := filepath.Join(folder, "repository")
	for file, text := range map[string]string{
		"go.mod": "module example.com/a\n", "a.sum": "", ".gitattributes": "",
		"Makefile": "version:\n\techo made\n", "hack/env": string(must.Get(os.ReadFile("env"))(t)),
		"hack/development.env": string(must.Get(os.ReadFile("development.env"))(t)),
		".gitignore":           "/.local/\n",
	} {
		must.Do(t, os.MkdirAll(filepath.Dir(filepath.Join(root, file)), 0o755))
		must.Do(t, os.WriteFile(filepath.Join(root, file), []byte(text), 0o755))
	}
	must.Do(t, os.WriteFile(filepath.Join(folder, "all"), []byte("*\n"), 0o644))
	output(t, "bash", "-c", `cd "$0" && git init -q && git add -A &&
		git -c user.name=a -c user.email=a@localhost commit -qm a`, root)
	return root
}
