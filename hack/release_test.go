package hack

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"debug/elf"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/setting"
)

const (
	releaseVersion = "v1.2.3-rc.1"
	releaseImage   = "registry.example:5000/acme/controller"
)

func TestReleaseRefusesBadNamesBeforeItWrites(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "release")
	for _, test := range []struct{ version, image, want string }{
		{"", releaseImage, "write one like v1.2.3"},
		{"1.2.3", releaseImage, "write one like v1.2.3"},
		{"v1.2", releaseImage, "write one like v1.2.3"},
		{"v1.02.3", releaseImage, "write one like v1.2.3"},
		{"v1.2.3+build", releaseImage, "write one like v1.2.3"},
		{"v1.2.3 -rc", releaseImage, "write one like v1.2.3"},
		{releaseVersion, "controller", "like ghcr.io/acme/controller"},
		{releaseVersion, "ghcr.io/Acme/controller", "like ghcr.io/acme/controller"},
		{releaseVersion, "ghcr.io/acme/controller:v1", "like ghcr.io/acme/controller"},
	} {
		_, problem, err := script(t, "", "hack/release", test.version, test.image, folder)
		if err == nil || !strings.Contains(problem, test.want) {
			t.Errorf("%q, %q: got %v, %q; want an error that says %q", test.version, test.image, err,
				problem, test.want)
		}
	}
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("got %v, want no folder", err)
	}
}

func TestRelease(t *testing.T) {
	onCluster(t)
	one, other := t.TempDir(), t.TempDir()
	for _, folder := range []string{one, other} {
		output(t, "hack/release", releaseVersion, releaseImage, folder)
	}
	files := []string{"checksums.txt", "crd.yaml", "image.tar", "install.yaml", "sbom.cdx.json"}
	for _, file := range files {
		if !bytes.Equal(read(t, one, file), read(t, other, file)) {
			t.Errorf("%s: a second run wrote something else", file)
		}
	}
	if entries, err := os.ReadDir(one); err != nil || len(entries) != len(files) {
		t.Errorf("got %v, %v; want %q", entries, err, files)
	}
	var sums string
	for _, file := range files[1:] {
		sums += fmt.Sprintf("%x  %s\n", sha256.Sum256(read(t, one, file)), file)
	}
	if got := string(read(t, one, "checksums.txt")); got != sums {
		t.Errorf("got checksums\n%swant\n%s", got, sums)
	}
	layout := t.TempDir()
	output(t, "tar", "-xf", filepath.Join(one, "image.tar"), "-C", layout)
	t.Run("the SBOM lists what is in the binaries", func(t *testing.T) { compareSBOM(t, one, layout) })
	t.Run("the image has a static binary that knows its version", func(t *testing.T) { checkImage(t, layout) })
	t.Run("the files are the kustomization", func(t *testing.T) { compareInstall(t, one, layout) })
	t.Run("the controller comes and goes without its Foos", func(t *testing.T) { install(t, one) })
}

func read(t *testing.T, path ...string) []byte {
	t.Helper()
	return must.Get(os.ReadFile(filepath.Join(path...)))(t)
}

// descriptors are what an index and a manifest have, in the layout of an OCI image.
type descriptors struct {
	Manifests, Layers []struct{ Digest string }
	Config            struct{ Digest string }
}

func readDescriptors(t *testing.T, path ...string) (value descriptors) {
	t.Helper()
	must.Do(t, json.Unmarshal(read(t, path...), &value))
	return value
}

func blob(digest string) string { return "blobs/" + strings.Replace(digest, ":", "/", 1) }

// compareSBOM compares the SBOM with what go says of the binary for each platform.
func compareSBOM(t *testing.T, folder, layout string) {
	index := blob(readDescriptors(t, layout, "index.json").Manifests[0].Digest)
	manifests := readDescriptors(t, layout, index).Manifests
	if len(manifests) != 2 {
		t.Fatalf("the image is for %d platforms, want 2", len(manifests))
	}
	var want []string
	for _, manifest := range manifests {
		layers := readDescriptors(t, layout, blob(manifest.Digest)).Layers
		binary := t.TempDir()
		output(t, "tar", "-xzf", filepath.Join(layout, blob(layers[0].Digest)), "-C", binary)
		want = append(want, modules(t, filepath.Join(binary, "sample-controller"))...)
	}
	var sbom struct {
		Components []struct{ Name, Version string }
	}
	must.Do(t, json.Unmarshal(read(t, folder, "sbom.cdx.json"), &sbom))
	var got []string
	for _, component := range sbom.Components {
		got = append(got, component.Name+" "+component.Version)
	}
	slices.Sort(want)
	slices.Sort(got) // the list is in the order of the PURLs
	if want = slices.Compact(want); !slices.Equal(got, want) || len(want) < 10 {
		t.Errorf("the SBOM has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// checkImage looks into the image of this machine's architecture. ./image tests that the digests are right.
func checkImage(t *testing.T, layout string) {
	index := blob(readDescriptors(t, layout, "index.json").Manifests[0].Digest)
	for _, manifest := range readDescriptors(t, layout, index).Manifests {
		content := readDescriptors(t, layout, blob(manifest.Digest))
		var image struct {
			Architecture string
			Config       struct {
				User       string
				Entrypoint []string
				Labels     map[string]string
			}
		}
		must.Do(t, json.Unmarshal(read(t, layout, blob(content.Config.Digest)), &image))
		if image.Config.User != "65532:65532" || len(image.Config.Entrypoint) != 1 {
			t.Fatalf("the image has %+v, want user 65532:65532 and one entrypoint", image)
		}
		dir := t.TempDir()
		output(t, "tar", "-xzf", filepath.Join(layout, blob(content.Layers[0].Digest)), "-C", dir)
		binary := filepath.Join(dir, image.Config.Entrypoint[0])
		file := must.Get(elf.Open(binary))(t)
		defer file.Close()
		for _, segment := range file.Progs {
			if segment.Type == elf.PT_INTERP || segment.Type == elf.PT_DYNAMIC {
				t.Errorf("the program has a segment %v; link it statically, with CGO_ENABLED=0", segment.Type)
			}
		}
		if runtime.GOOS != "linux" || runtime.GOARCH != image.Architecture {
			continue // this machine cannot run it
		}
		printed := output(t, binary, "--version")
		for _, label := range []string{"version", "revision"} {
			value := image.Config.Labels["org.opencontainers.image."+label]
			if value == "" || !strings.Contains(printed, value) {
				t.Errorf("--version prints %q, but the label %s is %q", printed, label, value)
			}
		}
	}
}

// modules returns the modules in a binary, and the standard library, each with its version.
func modules(t *testing.T, binary string) (found []string) {
	t.Helper()
	first, rest, _ := strings.Cut(output(t, "go", "version", "-m", binary), "\n")
	_, version, _ := strings.Cut(first, ": go")
	found = append(found, "stdlib "+version)
	for line := range strings.Lines(rest) {
		switch fields := strings.Fields(line); fields[0] {
		case "dep":
			found = append(found, fields[1]+" "+fields[2])
		case "=>": // in place of the one before
			found[len(found)-1] = fields[1] + " " + fields[2]
		}
	}
	return found
}

func compareInstall(t *testing.T, folder, layout string) {
	digest := readDescriptors(t, layout, "index.json").Manifests[0].Digest
	image := regexp.MustCompile(`(?m)^ +image: (.*)$`)
	want := output(t, ".local/bin/kubectl", "kustomize", "artifacts/deploy")
	found := image.FindAllStringSubmatch(want, -1)
	if len(found) != 1 {
		t.Fatalf("the kustomization has the images %q, want one", found)
	}
	want = strings.Replace(want, found[0][1], releaseImage+":"+releaseVersion+"@"+digest, 1)
	objects := strings.Split(want, "---\n")
	at := slices.IndexFunc(objects, func(object string) bool {
		return strings.Contains(object, "\nkind: CustomResourceDefinition\n")
	})
	crd := "---\n" + objects[at]
	objects = slices.Delete(objects, at, at+1)
	for file, want := range map[string]string{
		"crd.yaml": crd, "install.yaml": strings.Join(objects, "---\n"),
	} {
		if got := string(read(t, folder, file)); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", file, got, want)
		}
	}
}

// install applies the files, and deletes what the second one has. The Pods become ready, but no
// container runs: the node is simulated.
func install(t *testing.T, folder string) {
	t.Setenv("KUBECACHEDIR", t.TempDir())
	kubectl := func(args ...string) { output(t, ".local/bin/kubectl", args...) }
	crd := "--filename=" + filepath.Join(folder, "crd.yaml")
	file := "--filename=" + filepath.Join(folder, "install.yaml")
	foo := "--filename=artifacts/examples/example-foo.yaml"
	defer kubectl("delete", foo, file, crd, "--ignore-not-found")
	kubectl("apply", crd, file)
	kubectl("-n", "sample-controller", "rollout", "status",
		"deployment/sample-controller", "--timeout="+cmp.Or(os.Getenv("HACK_PATIENCE"), "3m"))
	kubectl("create", foo)
	kubectl("delete", file)
	kubectl("get", foo) // deleting the controller has not deleted it
}

func TestReleaseIsRedIfNobodyKnowsWhetherItIsVulnerable(t *testing.T) {
	setting.Long(t)
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1") // where nobody answers
	said := regexp.MustCompile(`^vulnerabilities: not checked, because ` +
		`(govulncheck cannot be installed|the database cannot be reached: https://vuln\.go\.dev)\n$`)
	for _, required := range []bool{false, true} {
		t.Setenv("HACK_REQUIRED", fmt.Sprint(required))
		stdout, stderr, err := script(t, "", "hack/vulnerabilities")
		if (err != nil) != required || !said.MatchString(stdout) {
			t.Errorf("REQUIRED=%v: got %v, %s%s", required, err, stdout, stderr)
		}
	}
}

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
