package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"example.com/sample-controller/internal/testing/must"
)

var fakeBinaries = map[string][]byte{"amd64": []byte("for amd64"), "arm64": []byte("for arm64")}

func testArchive(t *testing.T) []byte {
	t.Helper()
	var buffer bytes.Buffer
	must.Do(t, writeArchive(&buffer, "example.com/test:v1", map[string]string{"label": "value"},
		[]string{"amd64", "arm64"}, fakeBinaries))
	return buffer.Bytes()
}

func untar(t *testing.T, archive []byte) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for reader := tar.NewReader(bytes.NewReader(archive)); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		must.Do(t, err)
		files[header.Name] = must.Get(io.ReadAll(reader))(t)
	}
}

func decode[T any](t *testing.T, text []byte) (value T) {
	t.Helper()
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return value
}

func TestSameInputGivesTheSameBytes(t *testing.T) {
	if !bytes.Equal(testArchive(t), testArchive(t)) {
		t.Error("got two different archives")
	}
}

func TestEveryBlobHasTheDigestThatItIsNamedBy(t *testing.T) {
	files := untar(t, testArchive(t))
	var follow func(descriptor)
	blobs := 0
	follow = func(d descriptor) {
		blobs++
		content := files[blobPath(d.Digest)]
		if digestOf(content) != d.Digest || len(content) != d.Size {
			t.Errorf("got blob %q for %+v", content, d)
		}
		switch d.MediaType {
		case mediaTypeIndex:
			for _, manifest := range decode[index](t, content).Manifests {
				follow(manifest)
			}
		case mediaTypeManifest:
			follow(decode[manifest](t, content).Config)
			for _, layer := range decode[manifest](t, content).Layers {
				follow(layer)
			}
		}
	}
	for _, root := range decode[index](t, files["index.json"]).Manifests {
		follow(root)
	}
	if blobs != 1+2*3 {
		t.Errorf("found %d blobs, want 7: an index, and two each of manifest, config and layer", blobs)
	}
}

func TestImageRunsTheBinaryAsNonroot(t *testing.T) {
	files := untar(t, testArchive(t))
	docker := decode[[]dockerManifest](t, files["manifest.json"])
	if len(docker) != 1 || docker[0].RepoTags[0] != "example.com/test:v1" {
		t.Fatalf("got manifest.json %+v, want one image example.com/test:v1", docker)
	}
	config := decode[imageConfig](t, files[docker[0].Config])
	if got := config.Config.Entrypoint; !reflect.DeepEqual(got, []string{"/sample-controller"}) {
		t.Errorf("got entrypoint %q, want /sample-controller", got)
	}
	if config.Config.User != "65532:65532" || config.platform != (platform{"linux", "amd64"}) {
		t.Errorf("got config %+v, want user 65532:65532 on linux/amd64", config)
	}
	layer := must.Get(gzip.NewReader(bytes.NewReader(files[docker[0].Layers[0]])))(t)
	content := must.Get(io.ReadAll(layer))(t)
	if diffID := config.RootFS.DiffIDs[0]; diffID != digestOf(content) {
		t.Errorf("got diff ID %s, but the layer's is %s", diffID, digestOf(content))
	}
	want := map[string][]byte{"sample-controller": []byte("for amd64")}
	if got := untar(t, content); !reflect.DeepEqual(got, want) {
		t.Errorf("got layer %q, want %q", got, want)
	}
}

// serialNumber is what the schema of CycloneDX says.
var serialNumber = regexp.MustCompile(
	`^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

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
	for _, component := range list.Components {
		got = append(got, component.PURL)
	}
	want := []string{"pkg:golang/example.com/early@v2.0.0%2Bincompatible",
		"pkg:golang/example.com/fork@v1.0.1", "pkg:golang/example.com/shared@v1.0.0",
		"pkg:golang/stdlib@1.26.8"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if !serialNumber.MatchString(list.Serial) {
		t.Errorf("got serial number %q, want a match of %v", list.Serial, serialNumber)
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
