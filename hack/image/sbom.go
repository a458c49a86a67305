package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"
)

// writeSBOM writes what the linker has noted in the binaries of an image: their modules. So the
// list is that of the image, and not that of go.mod, which also has what only tests need.
func writeSBOM(path, image string, binaries map[string][]byte) error {
	var builds []*debug.BuildInfo
	for _, binary := range binaries {
		build, err := buildinfo.Read(bytes.NewReader(binary))
		if err != nil {
			return err
		}
		builds = append(builds, build)
	}
	list, err := newBOM(image, builds)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	encoder := cyclonedx.NewBOMEncoder(&text, cyclonedx.BOMFileFormatJSON).SetPretty(true)
	if err := encoder.EncodeVersion(list, cyclonedx.SpecVersion1_6); err != nil {
		return err
	}
	return os.WriteFile(path, text.Bytes(), 0o644)
}

// newBOM returns the bill of materials of an image: the modules in the binaries and Go's standard
// library, each once, in the order of their names. Nothing in it depends on the time.
func newBOM(image string, builds []*debug.BuildInfo) (*cyclonedx.BOM, error) {
	var components []cyclonedx.Component
	for _, build := range builds {
		goVersion, _, _ := strings.Cut(strings.TrimPrefix(build.GoVersion, "go"), " ")
		components = append(components, library("stdlib", goVersion))
		for _, module := range build.Deps {
			if module.Replace != nil {
				module = module.Replace
			}
			if module.Version == "" {
				return nil, fmt.Errorf("%s has no version: it is a folder that replaces a module",
					module.Path)
			}
			components = append(components, library(module.Path, module.Version))
		}
	}
	slices.SortFunc(components, func(a, b cyclonedx.Component) int {
		return strings.Compare(a.PackageURL, b.PackageURL)
	})
	components = slices.CompactFunc(components, func(a, b cyclonedx.Component) bool {
		return a.PackageURL == b.PackageURL
	})
	tag := strings.LastIndex(image, ":")
	list := cyclonedx.NewBOM()
	// actions/attest requires a UUID. This one follows from what is in the list.
	list.SerialNumber = uuid.NewHash(sha256.New(), uuid.Nil, fmt.Append(nil, image, components), 8).URN()
	list.Components = &components
	list.Metadata = &cyclonedx.Metadata{Component: &cyclonedx.Component{
		Type: cyclonedx.ComponentTypeContainer, Name: image[:tag], Version: image[tag+1:]}}
	return list, nil
}

func library(name, version string) cyclonedx.Component {
	purl := "pkg:golang/" + name + "@" + strings.ReplaceAll(version, "+", "%2B")
	return cyclonedx.Component{Type: cyclonedx.ComponentTypeLibrary, BOMRef: purl, Name: name,
		Version: version, PackageURL: purl}
}
