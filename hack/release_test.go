package hack

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"debug/elf"
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

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"sigs.k8s.io/yaml"

	"example.com/sample-controller/internal/testing/must"
)

const (
	releaseVersion = "v1.2.3-rc.1"
	releaseImage   = "registry.example:5000/acme/controller"
)

func TestRelease(t *testing.T) {
	onCluster(t)
	one, other := t.TempDir(), t.TempDir()
	for _, folder := range []string{one, other} {
		output(t, "hack/release", releaseVersion, releaseImage, folder)
	}
	files := []string{"checksums.txt", "crd.yaml", "image.tar", "install.yaml"}
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
	unpacked := t.TempDir()
	output(t, "tar", "-xf", filepath.Join(one, "image.tar"), "-C", unpacked)
	archive := must.Get(layout.ImageIndexFromPath(unpacked))(t)
	digest := must.Get(archive.IndexManifest())(t).Manifests[0].Digest
	checkImages(t, must.Get(archive.ImageIndex(digest))(t))
	manifest := string(read(t, one, "install.yaml"))
	if image := releaseImage + ":" + releaseVersion + "@" + digest.String(); strings.Count(manifest, image) != 1 {
		t.Errorf("install.yaml does not name the image %s once", image)
	}
	if strings.Contains(manifest, "kind: CustomResourceDefinition") {
		t.Error("install.yaml has a CustomResourceDefinition: to delete with it would delete all Foos")
	}
	install(t, one)
}

func read(t *testing.T, path ...string) []byte {
	t.Helper()
	return must.Get(os.ReadFile(filepath.Join(path...)))(t)
}

// checkImages looks at the image for each architecture: its program must be static and know its
// version. ./image tests that the digests are right.
func checkImages(t *testing.T, all v1.ImageIndex) {
	manifests := must.Get(all.IndexManifest())(t).Manifests
	if len(manifests) != 2 {
		t.Errorf("got images for %d platforms, want 2", len(manifests))
	}
	for _, manifest := range manifests {
		image := must.Get(all.Image(manifest.Digest))(t)
		config := must.Get(image.ConfigFile())(t)
		if config.Config.User != "65532:65532" || len(config.Config.Entrypoint) != 1 {
			t.Fatalf("the image has %+v, want user 65532:65532 and one entrypoint", config.Config)
		}
		dir := t.TempDir()
		unpack := exec.Command("tar", "-x", "-C", dir)
		unpack.Stdin = mutate.Extract(image)
		must.Do(t, unpack.Run())
		path := filepath.Join(dir, config.Config.Entrypoint[0])
		program := must.Get(elf.Open(path))(t)
		defer program.Close()
		for _, segment := range program.Progs {
			if segment.Type == elf.PT_INTERP || segment.Type == elf.PT_DYNAMIC {
				t.Errorf("the program has a segment %v; link it statically, with CGO_ENABLED=0", segment.Type)
			}
		}
		if runtime.GOOS != "linux" || runtime.GOARCH != config.Architecture {
			continue // this machine cannot run it
		}
		printed := output(t, path, "--version")
		for _, label := range []string{"version", "revision"} {
			value := config.Config.Labels["org.opencontainers.image."+label]
			if value == "" || !strings.Contains(printed, value) {
				t.Errorf("--version prints %q, but the label %s is %q", printed, label, value)
			}
		}
	}
}

// install applies the files, and deletes what the second one has. The Pods become ready, but no
// container runs: the node is simulated.
func install(t *testing.T, folder string) {
	kubectl := func(args ...string) { output(t, "kubectl", args...) }
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

// The jobs that may write run no code of this repository or of its dependencies.
func TestJobsThatPublishRunNoCode(t *testing.T) {
	var workflow struct {
		Jobs map[string]struct {
			Permissions map[string]string
			Steps       []struct{ Uses, Run string }
		}
	}
	must.Do(t, yaml.Unmarshal(read(t, "../.github/workflows/release.yaml"), &workflow))
	code := regexp.MustCompile(`\bgo |\bmake |hack/|/(checkout|setup-go)@`)
	checked := 0
	for name, job := range workflow.Jobs {
		if !slices.Contains(slices.Collect(maps.Values(job.Permissions)), "write") {
			continue
		}
		checked++
		for _, step := range job.Steps {
			if found := code.FindString(step.Uses + " " + step.Run); found != "" {
				t.Errorf("the job %s runs code: %q", name, found)
			}
		}
	}
	if checked == 0 {
		t.Error("no job may write")
	}
}
