package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/setting"
)

// TestMain keeps the copy out of this repository: hack/env has go's temporary files in .local.
func TestMain(m *testing.M) {
	os.Unsetenv("GOTMPDIR")
	m.Run()
}

func TestEverythingGetsTheAddress(t *testing.T) {
	copied := t.TempDir()
	shell := func(folder, script string) string {
		t.Helper()
		command := exec.Command("bash", "-c", script)
		command.Dir = folder
		output, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", script, err, output)
		}
		return string(output)
	}
	shell("../..", "git ls-files -z | xargs -0 tar -cf - | tar -xf - -C "+copied)
	shell(copied, "git init -q . && git add -A && git -c user.name=a -c user.email=a@example.com commit -qm a")

	must.Do(t, run(t.Context(), copied, []string{"github.com/acme/foos"}))

	for _, want := range []string{"module github.com/acme/foos\n", "IMAGE := ghcr.io/acme/foos:"} {
		shell(copied, "grep -rqF '"+strings.TrimSpace(want)+"' go.mod hack/development.mk")
	}
	if left := shell(copied, `git grep -nE '(^|[^.a-z/-])example\.com/sample-controller\b' || :`); left != "" {
		t.Errorf("the old address is left:\n%s", left)
	}
	if changed := shell(copied, "git diff --stat -- '*.md' '*.sum'"); !strings.Contains(changed, "explore.md") {
		t.Errorf("docs/explore.md says the old address: %s", changed)
	}
	if err := run(t.Context(), copied, []string{"github.com/acme/foos"}); err == nil {
		t.Error("a changed repository is changed again")
	}
	setting.Long(t)
	for file := range strings.Lines(shell(copied, "git ls-files go.mod '*/go.mod' ':!hack/tools' ':!explore/board'")) {
		shell(filepath.Join(copied, filepath.Dir(strings.TrimSpace(file))), "go list -deps -test ./...") // all imports are found
	}
	shell(copied, "go test -short .")
}

func TestWrongAddressesAreRefused(t *testing.T) {
	for _, wrong := range []string{"", "acme", "github.com", "https://github.com/acme/foos", "github.com/Acme/Foos"} {
		err := run(t.Context(), "../..", []string{wrong})
		if err == nil || !strings.Contains(err.Error(), "write the address") {
			t.Errorf("%q: got %v", wrong, err)
		}
	}
}
