package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
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

// The conformance suite looks at what is in the image, and hack/release_test.go whether a second run
// gives the same bytes.
func TestEveryBlobHasTheDigestThatItIsNamedBy(t *testing.T) {
	files := untar(t, testArchive(t))
	blobs := 0
	follow := func(d descriptor) []byte {
		blobs++
		content := files[blobPath(d.Digest)]
		if digestOf(content) != d.Digest || len(content) != d.Size {
			t.Errorf("got blob %q for %+v", content, d)
		}
		return content
	}
	root := decode[index](t, files["index.json"]).Manifests[0]
	for _, platform := range decode[index](t, follow(root)).Manifests {
		m := decode[manifest](t, follow(platform))
		config := decode[imageConfig](t, follow(m.Config))
		layer := must.Get(gzip.NewReader(bytes.NewReader(follow(m.Layers[0]))))(t)
		if got := digestOf(must.Get(io.ReadAll(layer))(t)); config.RootFS.DiffIDs[0] != got {
			t.Errorf("got diff ID %s, but the layer's is %s", config.RootFS.DiffIDs[0], got)
		}
	}
	if blobs != 1+2*3 {
		t.Errorf("found %d blobs, want 7: an index, and two each of manifest, config and layer", blobs)
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
