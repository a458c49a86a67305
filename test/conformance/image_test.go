package conformance

import (
	"archive/tar"
	"compress/gzip"
	"debug/elf"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

var imagePath = flag.String("image", "../../.local/image.tar", "`archive` with the image")

// fileInTar calls read with one file of a tar archive.
func fileInTar(t *testing.T, archive io.Reader, name string, read func(io.Reader)) {
	t.Helper()
	for reader := tar.NewReader(archive); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			t.Fatalf("%s is not in the archive", name)
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Name == name {
			read(reader)
			return
		}
	}
}

// fileInImage calls read with one file of the image's archive.
func fileInImage(t *testing.T, name string, read func(io.Reader)) {
	t.Helper()
	archive, err := os.Open(*imagePath)
	if err != nil {
		t.Fatalf("no image: %v; run 'make image', or set -image", err)
	}
	defer archive.Close()
	fileInTar(t, archive, name, read)
}

func jsonInImage(t *testing.T, name string, value any) {
	t.Helper()
	fileInImage(t, name, func(reader io.Reader) {
		if err := json.NewDecoder(reader).Decode(value); err != nil {
			t.Fatal(err)
		}
	})
}

// hack/image tests that the archive's digests are right.
func TestImageHasAStaticBinaryThatKnowsItsVersion(t *testing.T) {
	var manifests []struct {
		Config string
		Layers []string
	}
	jsonInImage(t, "manifest.json", &manifests)
	var image struct {
		Architecture string
		Config       struct {
			User       string
			Entrypoint []string
			Labels     map[string]string
		}
	}
	jsonInImage(t, manifests[0].Config, &image)
	if image.Config.User != "65532:65532" || len(image.Config.Entrypoint) != 1 {
		t.Fatalf("the image has %+v, want user 65532:65532 and one entrypoint", image)
	}
	binary := filepath.Join(t.TempDir(), "binary")
	fileInImage(t, manifests[0].Layers[0], func(compressed io.Reader) {
		layer, err := gzip.NewReader(compressed)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(image.Config.Entrypoint[0], "/")
		fileInTar(t, layer, name, func(content io.Reader) { writeProgram(t, binary, content) })
	})
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

func writeProgram(t *testing.T, path string, content io.Reader) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(file, content); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

// staticallyLinked fails the test if the program needs a dynamic linker or libraries.
func staticallyLinked(t *testing.T, path string) {
	t.Helper()
	file, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, segment := range file.Progs {
		if segment.Type == elf.PT_INTERP || segment.Type == elf.PT_DYNAMIC {
			t.Errorf("the program has a segment %v; link it statically, with CGO_ENABLED=0", segment.Type)
		}
	}
}
