package hack

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"example.com/sample-controller/internal/testing/must"
)

// workflow is what these tests read of the workflow that publishes a release.
type workflow struct {
	Jobs map[string]struct {
		Environment string
		Permissions map[string]string
		Needs       any
		Steps       []struct{ Uses, Run string }
	}
}

func readWorkflow(t *testing.T) (value workflow) {
	t.Helper()
	must.Do(t, yaml.Unmarshal(read(t, "../.github/workflows/release.yaml"), &value))
	return value
}

// The jobs that may write run no code of this repository or of its dependencies. Their second step
// accepts only the files of the job that runs such code.
func TestJobsThatPublishTakeOnlyWhatWasBuilt(t *testing.T) {
	code := regexp.MustCompile(`\bgo |\bmake |hack/|/(checkout|setup-go)@`)
	checked := 0
	for name, job := range readWorkflow(t).Jobs {
		if !slices.Contains(slices.Collect(maps.Values(job.Permissions)), "write") {
			continue
		}
		checked++
		for _, step := range job.Steps {
			if found := code.FindString(step.Uses + " " + step.Run); found != "" {
				t.Errorf("the job %s runs code: %q", name, found)
			}
		}
		if job.Environment != "release" && !strings.Contains(fmt.Sprint(job.Needs), "publish") {
			t.Errorf("the job %s waits for nobody who approves it", name)
		}
		refusesOtherFiles(t, job.Steps[1].Run)
	}
	if checked != 2 {
		t.Errorf("%d jobs may write, want 2", checked)
	}
}

// refusesOtherFiles runs the commands with the archive of the job build, and with another one.
func refusesOtherFiles(t *testing.T, commands string) {
	t.Helper()
	if _, err := exec.LookPath("sha256sum"); err != nil {
		t.Skip("NOT RUN: the workflow runs on Linux; there is no sha256sum here")
	}
	dir := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	output(t, "tar", "-cf", filepath.Join(dir, "release.tar"), "-C", dir, "file")
	t.Setenv("SUM", fmt.Sprintf("%x", sha256.Sum256(read(t, dir, "release.tar"))))
	if _, problem, err := script(t, "", "bash", "-ec", `cd "$0"; `+commands, dir); err != nil {
		t.Errorf("%q: %v: %s", commands, err, problem)
	}
	t.Setenv("SUM", strings.Repeat("0", 64))
	if _, _, err := script(t, "", "bash", "-ec", `cd "$0"; `+commands, dir); err == nil {
		t.Errorf("%q accepts a file that the job build has not made", commands)
	}
}

func TestReleaseIsOnMain(t *testing.T) {
	step := readWorkflow(t).Jobs["build"].Steps[1]
	for branch, want := range map[string]string{"main": "<nil>", "other": "exit status 1"} {
		_, _, err := script(t, "", "bash", "-ec", `cd "$0"; git init -qb main .
			git config user.name me; git config user.email me@example.com
			git commit -q --allow-empty -m one; git update-ref refs/remotes/origin/main HEAD
			git checkout -qB "$1"; [[ $1 == main ]] || git commit -q --allow-empty -m two
			`+step.Run, t.TempDir(), branch)
		if fmt.Sprint(err) != want {
			t.Errorf("%q, on the branch %s: got %v, want %s", step.Run, branch, err, want)
		}
	}
}
