package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
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
