package conformance

import (
	"debug/elf"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"example.com/sample-controller/internal/testing/must"
)

var imagePath = flag.String("image", "../../.local/image.tar", "`archive` with the image")

func unpack(t *testing.T, file, dir string) {
	t.Helper()
	if output, err := exec.Command("tar", "-xf", file, "-C", dir).CombinedOutput(); err != nil {
		t.Fatalf("no image: %v: %s; run 'make image', or set -image", err, output)
	}
}

func readJSON(t *testing.T, file string, value any) {
	t.Helper()
	must.Do(t, json.Unmarshal(must.Get(os.ReadFile(file))(t), value))
}

// hack/image tests that the archive's digests are right.
func TestImageHasAStaticBinaryThatKnowsItsVersion(t *testing.T) {
	dir := t.TempDir()
	unpack(t, *imagePath, dir)
	var manifests []struct {
		Config string
		Layers []string
	}
	readJSON(t, filepath.Join(dir, "manifest.json"), &manifests)
	var image struct {
		Architecture string
		Config       struct {
			User       string
			Entrypoint []string
			Labels     map[string]string
		}
	}
	readJSON(t, filepath.Join(dir, manifests[0].Config), &image)
	if image.Config.User != "65532:65532" || len(image.Config.Entrypoint) != 1 {
		t.Fatalf("the image has %+v, want user 65532:65532 and one entrypoint", image)
	}
	unpack(t, filepath.Join(dir, manifests[0].Layers[0]), dir)
	binary := filepath.Join(dir, image.Config.Entrypoint[0])
	staticallyLinked(t, binary)

	if runtime.GOOS != "linux" || runtime.GOARCH != image.Architecture {
		return // this machine cannot run it
	}
	output, err := exec.Command(binary, "--version").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	for _, label := range []string{"version", "revision"} {
		value := image.Config.Labels["org.opencontainers.image."+label]
		if value == "" || !strings.Contains(string(output), value) {
			t.Errorf("--version prints %q, but the label %s is %q", output, label, value)
		}
	}
}

// staticallyLinked fails the test if the program needs a dynamic linker or libraries.
func staticallyLinked(t *testing.T, path string) {
	t.Helper()
	file := must.Get(elf.Open(path))(t)
	defer file.Close()
	for _, segment := range file.Progs {
		if segment.Type == elf.PT_INTERP || segment.Type == elf.PT_DYNAMIC {
			t.Errorf("the program has a segment %v; link it statically, with CGO_ENABLED=0", segment.Type)
		}
	}
}
