package hack

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/setting"
)

// place copies the scripts into a folder with such a name, and returns the folder.
func place(t *testing.T, name string) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), name)
	must.Do(t, os.MkdirAll(filepath.Join(folder, ".local"), 0o700))
	output(t, "cp", "-R", "hack", folder)
	return folder
}

// The control plane works in a folder with any printable characters in its path, but for those that
// are refused before anything is started.
func TestControlPlaneWorksInOddFolders(t *testing.T) {
	setting.Long(t)
	folder := place(t, "a!$&'()*+-.;<=>?@[]^_`{|}~ä")
	bin := must.Get(filepath.Abs("../.local/bin"))(t)
	output(t, "ln", "-s", bin, folder+"/bin")
	output(t, "cp", "-RL", folder+"/bin", folder+"/.local/bin")
	t.Cleanup(func() { must.Do(t, exec.Command(folder+"/hack/cluster", "down", "odd").Run()) })
	output(t, folder+"/hack/cluster", "up", "odd")
}

func TestOddFoldersAreRefused(t *testing.T) {
	for _, character := range " \t\n#,%:\"\\\x01" {
		folder := place(t, "a"+string(character)+"b")
		_, problem, err := script(t, "", folder+"/hack/cluster", "up", "odd")
		if err == nil || !strings.Contains(problem, "move or rename") {
			t.Errorf("%q: got %v, %s", character, err, problem)
		}
		if _, err := os.Stat(folder + "/.local/clusters"); err == nil {
			t.Errorf("%q: a cluster was begun", character)
		}
	}
}

// Nothing is deleted, and no mode is changed, through a link.
func TestLinksAreRefused(t *testing.T) {
	for _, link := range []string{".local", ".local/clusters", ".local/bin"} {
		folder, other := place(t, "a"), t.TempDir()
		must.Do(t, os.Mkdir(other+"/clusters", 0o755))
		must.Do(t, os.WriteFile(other+"/clusters/mine", nil, 0o644))
		must.Do(t, os.RemoveAll(filepath.Join(folder, link)))
		must.Do(t, os.Symlink(other, filepath.Join(folder, link)))
		output(t, "cp", "Makefile", folder)
		for _, command := range []string{"hack/cluster up odd", "hack/cluster down odd", "make clean"} {
			_, problem, err := script(t, "", "bash", "-c", `cd "$0" && `+command, folder)
			if err == nil || !strings.Contains(problem, "is a link, and must not be one") {
				t.Errorf("%s, %s: got %v, %s", link, command, err, problem)
			}
		}
		if _, err := os.Stat(other + "/clusters/mine"); err != nil {
			t.Errorf("%s: %v", link, err)
		}
		if info := must.Get(os.Stat(other))(t); info.Mode().Perm() != 0o755 {
			t.Errorf("%s: the mode became %v", link, info.Mode())
		}
	}
}

func TestCleanKeepsWhatALearnerWrote(t *testing.T) {
	folder := place(t, "a")
	output(t, "bash", "-c", `cp Makefile "$0" && cd "$0" && mkdir -p .local/{bin,learn} && make clean`, folder)
	if left := output(t, "ls", folder+"/.local"); left != "learn\n" {
		t.Errorf("make clean left %q", left)
	}
}

// What a reader may type or set is refused with one sentence, if it is wrong.
func TestWrongInputIsRefused(t *testing.T) {
	for command, want := range map[string]string{
		"HACK_PATIENCE=long hack/test":            "write one like HACK_PATIENCE=10m",
		"HACK_JOBS=-1 hack/test":                  "write one like HACK_JOBS=4",
		"HACK_JOB=4 hack/test":                    "there is no setting HACK_JOB",
		"HACK_TESTS=some hack/test":               "write one like HACK_TESTS=all",
		"HACK_KUBERNETES=1.3x hack/cluster build": "write one like HACK_KUBERNETES=1.35",
		"HACK_KUBERNETES=1.20 hack/cluster build": "hack/versions has no Kubernetes 1.20; add a line",
		"make build VERSION=1.0":                  "write one like VERSION=v1.2.3",
		"make cluster-down CLUSTER=":              "is ''",
		"make cluster-down CLUSTER='$$(touch x)'": "is '$(touch x)'",
		"CLUSTER=x MAKEFLAGS=-e make help":        "make -e is set",
		". hack/env; ln() { false; }; alone a":    "has no hard links",

		"hack/cluster fly":                      "usage: hack/cluster",
		"hack/cluster up one two":               "usage: hack/cluster",
		"hack/cluster up Dev":                   "a-z",
		"hack/cluster kill-server never-was":    "is not up",
		"hack/cluster start-server never-was":   "hack/cluster up never-was",
		"hack/demo --on-any-cluster":            "usage: hack/demo",
		"hack/e2e":                              "usage: hack/e2e",
		"hack/home":                             "write the address",
		"hack/home acme":                        "write the address",
		"hack/home github.com":                  "write the address",
		"hack/home https://github.com/acme/foo": "write the address",
		"hack/home github.com/Acme/foos":        "write the address",
		"hack/test nonsense":                    "usage: hack/test",
		"hack/release":                          "usage: hack/release",
		"hack/release 1.2.3":                    "write one like v1.2.3",
		"hack/release v1.2":                     "write one like v1.2.3",
		"hack/release v1.02.3":                  "write one like v1.2.3",
		"hack/release v1.2.3+build":             "write one like v1.2.3",
		"hack/release 'v1.2.3 -rc'":             "write one like v1.2.3",
		"hack/release v1.2.3 controller":        "like ghcr.io/acme/controller",
		"hack/release v1.2.3 ghcr.io/Acme/a":    "like ghcr.io/acme/controller",
		"hack/release v1.2.3 ghcr.io/acme/a:v1": "like ghcr.io/acme/controller",
	} {
		stdout, problem, err := script(t, "", "bash", "-c", command)
		if err == nil || !strings.Contains(problem, want) || stdout != "" {
			t.Errorf("%s: got %v, %s%s; want %q", command, err, stdout, problem, want)
		}
	}
}

// Files have the ends of lines that scripts and goldens need, whatever git makes of others.
func TestClonesHaveTheSameFiles(t *testing.T) {
	folder := t.TempDir()
	output(t, "bash", "-c", `git init -q "$0/a" && cp -R .gitattributes hack "$0/a" && cd "$0/a" &&
		git add -A && git -c user.name=a -c user.email=a@localhost commit -qm a &&
		git clone -q -c core.autocrlf=true . ../b && diff -r -x .git . ../b && ../b/hack/env true`, folder)
}
