package main

import (
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"example.com/sample-controller/internal/testing/must"
)

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
