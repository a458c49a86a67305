package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"example.com/sample-controller/internal/testing/must"
)

var fakeBinaries = map[string][]byte{"amd64": []byte("for amd64"), "arm64": []byte("for arm64")}

// hack/release_test.go looks at what is in the image, and whether a second run gives the same bytes.
func TestArchiveIsAValidLayout(t *testing.T) {
	folder := t.TempDir()
	tar := exec.Command("tar", "-x", "-C", folder)
	input := must.Get(tar.StdinPipe())(t)
	must.Do(t, tar.Start())
	must.Do(t, writeArchive(input, "example.com/test:v1", map[string]string{"label": "value"},
		[]string{"amd64", "arm64"}, fakeBinaries))
	must.Do(t, errors.Join(input.Close(), tar.Wait()))
	must.Do(t, validate.Index(must.Get(layout.ImageIndexFromPath(folder))(t)))
	var docker tarball.Manifest
	must.Do(t, json.Unmarshal(must.Get(os.ReadFile(filepath.Join(folder, "manifest.json")))(t), &docker))
	for _, file := range append(docker[0].Layers, docker[0].Config) {
		must.Get(os.Stat(filepath.Join(folder, file)))(t)
	}
}

// hack/release_test.go compares the list of a real image with what "go version -m" prints.
func TestSBOMListsEachModuleOnce(t *testing.T) {
	shared := &debug.Module{Path: "example.com/shared", Version: "v1.0.0"}
	list := must.Get(newBOM("localhost:5000/test:v1.2.3", []*debug.BuildInfo{
		{GoVersion: "go1.26.8 X:some", Deps: []*debug.Module{shared, {Path: "example.com/old",
			Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/fork", Version: "v1.0.1"}}}},
		{GoVersion: "go1.26.8", Deps: []*debug.Module{
			{Path: "example.com/early", Version: "v2.0.0+incompatible"}, shared}},
	}))(t)
	var got []string
	for _, component := range *list.Components {
		got = append(got, component.PackageURL)
	}
	want := []string{"pkg:golang/example.com/early@v2.0.0%2Bincompatible",
		"pkg:golang/example.com/fork@v1.0.1", "pkg:golang/example.com/shared@v1.0.0",
		"pkg:golang/stdlib@1.26.8"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	image := list.Metadata.Component
	if image.Name != "localhost:5000/test" || image.Version != "v1.2.3" {
		t.Errorf("got image %+v, want localhost:5000/test v1.2.3", image)
	}
}

func TestSBOMRefusesModulesWithoutVersions(t *testing.T) {
	_, err := newBOM("test:v1", []*debug.BuildInfo{{Deps: []*debug.Module{{Path: "example.com/old",
		Version: "v1.0.0", Replace: &debug.Module{Path: "../mine"}}}}})
	if err == nil || !strings.Contains(err.Error(), "../mine has no version") {
		t.Errorf("got %v, want an error that names ../mine", err)
	}
}
