package hack

import (
	"strings"
	"testing"

	"example.com/sample-controller/internal/testing/setting"
)

func TestEverythingGetsTheAddress(t *testing.T) {
	copied := t.TempDir()
	shell := func(command string) string {
		t.Helper()
		return output(t, "bash", "-c", "cd "+copied+" && "+command)
	}
	output(t, "bash", "-c", "git ls-files -z | xargs -0 tar -cf - | tar -xf - -C "+copied)
	shell("git init -q . && git add -A && git -c user.name=a -c user.email=a@example.com commit -qm a")

	shell("hack/home github.com/acme/foos")

	shell("grep -qxF 'module github.com/acme/foos' go.mod")
	shell("grep -qF 'IMAGE := ghcr.io/acme/foos:' hack/development.mk")
	if left := shell(`git grep -nE '(^|[^.a-z/-])example\.com/sample-controller\b' || :`); left != "" {
		t.Errorf("the old address is left:\n%s", left)
	}
	if changed := shell("git diff --stat -- '*.md' '*.sum'"); !strings.Contains(changed, "explore.md") {
		t.Errorf("docs/explore.md says the old address: %s", changed)
	}
	if _, _, err := script(t, "", copied+"/hack/home", "github.com/acme/foos"); err == nil {
		t.Error("a changed repository is changed again")
	}
	setting.Long(t)
	// All imports are found.
	shell(`for file in $(git ls-files go.mod '*/go.mod' ':!hack/tools' ':!explore/board'); do
		go -C "$(dirname "$file")" list -deps -test ./... || exit; done`)
	shell("go test -short .")
}
