package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
)

// bom is a software bill of materials in the format CycloneDX.
type bom struct {
	Schema      string `json:"$schema"`
	BOMFormat   string `json:"bomFormat"`
	SpecVersion string `json:"specVersion"`
	Serial      string `json:"serialNumber"`
	Version     int    `json:"version"`
	Metadata    struct {
		Component component `json:"component"`
	} `json:"metadata"`
	Components []component `json:"components"`
}

// component is one thing of which the image consists. PURL is a name that databases of
// vulnerabilities know it by.
type component struct {
	Type    string `json:"type"`
	Ref     string `json:"bom-ref,omitempty"`
	Name    string `json:"name"`
	Version string `json:"version"`
	PURL    string `json:"purl,omitempty"`
}

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
	text, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// newBOM returns the bill of materials of an image: the modules in the binaries and Go's standard
// library, each once, in the order of their names. Nothing in it depends on the time.
func newBOM(image string, builds []*debug.BuildInfo) (*bom, error) {
	tag := strings.LastIndex(image, ":")
	list := &bom{Schema: "http://cyclonedx.org/schema/bom-1.6.schema.json", BOMFormat: "CycloneDX",
		SpecVersion: "1.6", Version: 1}
	list.Metadata.Component = component{Type: "container", Name: image[:tag], Version: image[tag+1:]}
	for _, build := range builds {
		goVersion, _, _ := strings.Cut(strings.TrimPrefix(build.GoVersion, "go"), " ")
		list.Components = append(list.Components, library("stdlib", goVersion))
		for _, module := range build.Deps {
			if module.Replace != nil {
				module = module.Replace
			}
			if module.Version == "" {
				return nil, fmt.Errorf("%s has no version: it is a folder that replaces a module",
					module.Path)
			}
			list.Components = append(list.Components, library(module.Path, module.Version))
		}
	}
	slices.SortFunc(list.Components, func(a, b component) int {
		return strings.Compare(a.PURL, b.PURL)
	})
	list.Components = slices.Compact(list.Components)
	list.Serial = serial(list)
	return list, nil
}

// serial returns a UUID that follows from what is in the list. actions/attest requires one.
func serial(list *bom) string {
	sum := sha256.Sum256(fmt.Append(nil, *list))
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80 // version 8, of RFC 9562
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

func library(name, version string) component {
	purl := "pkg:golang/" + name + "@" + strings.ReplaceAll(version, "+", "%2B")
	return component{Type: "library", Ref: purl, Name: name, Version: version, PURL: purl}
}
