package main

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// example is the folder of a controller that can be forked in place of the one at the root: its
// files go to the root of the fork, beside the files of this repository that know no Foo.
const example = "examples/website"

// shared has what a fork of the example gets from this repository, besides its own files.
var shared = []string{
	".github/SECURITY.md", ".github/workflows", ".gitignore", ".golangci.yml", "CONTRIBUTING.md",
	"LICENSE", "Makefile", "explore", "go.mod", "go.sum", "hack/*", "hack/tools",
	"internal", "test/go.mod", "test/go.sum", templates + "website",
}

// ofFoos has what is about Foos in folders that are shared.
var ofFoos = []string{
	"internal/testing/scenarios", "internal/testing/mutants/c*.txt", "hack/fuzz",
	"explore/apiserver/*_test.go",
}

// exampleParts are the parts that a fork of the example can have.
var exampleParts = []string{"internal-tests", "mutants", "owned"}

// moves says where files of the example go. The first that fits counts.
var moves = [][2]string{
	{"artifacts/deploy/", "artifacts/deploy/"},
	{"artifacts/monitoring/", "artifacts/monitoring/"},
	{"artifacts/", "artifacts/examples/"},
	{"conformance/", "test/conformance/"},
	{"", ""}, // the rest
}

// paths replaces the paths and the commands in files of the example.
var paths = strings.NewReplacer(
	"go -C examples run ./website/registry", "go run ./registry",
	"go -C examples run ./website", "go run .",
	"hack/test website", "hack/test conformance",
	"example.com/sample-controller/examples/website", "example.com/sample-controller",
	`"../../.."`, `"../.."`,
	`"../artifacts/deploy/`, `"../../artifacts/deploy/`,
	`"../artifacts/monitoring/`, `"../../artifacts/monitoring/`,
	`"../artifacts/`, `"../../artifacts/examples/`,
	"examples/website/artifacts/deploy", "artifacts/deploy",
	"examples/website/artifacts/", "artifacts/examples/",
	"examples/website/", "",
	`"artifacts/crd.yaml"`, `"artifacts/examples/crd.yaml"`,
	`flag.Bool("cluster", false,`, `flag.Bool("cluster", true,`,
)

// template returns the repository as it is to be forked: as it is, or with the example at its root.
func (r *repository) template(from string) (*repository, error) {
	if from == "" {
		return r, nil
	}
	if from != path.Base(example) {
		return nil, fmt.Errorf("--from %q: there is no such template; write --from website, or nothing "+
			"for a single child", from)
	}
	moved := *r
	moved.files = map[string]string{}
	moved.names, moved.others = r.example, []names{r.names}
	for file, text := range r.files {
		to := file
		switch inside, isExample := strings.CutPrefix(file, example+"/"); {
		case isExample:
			to, text = placeOf(inside), paths.Replace(text)
		case file == mutantLists+"/website.txt":
			to, text = mutantLists+"/controller.txt", paths.Replace(text)
		case file == "hack/test":
			text = strings.ReplaceAll(text, "./internal/... ./pkg/...", "./internal/... ./meaning ./outside")
		case !isIn(file, shared) || isIn(file, ofFoos):
			continue
		}
		moved.files[to], moved.modes[to] = text, r.modes[file]
	}
	return &moved, nil
}

// old returns all names that must not be in a fork.
func (r *repository) old() []names { return append([]names{r.names}, r.others...) }

// newNames returns the names of a fork of this template. If the Go package of the old API is called
// as its kind, so is the new one.
func (r *repository) newNames(n names) names {
	if r.names.goGroup == r.names.kind {
		n.pkg, n.goGroup = strings.ToLower(n.kind), n.kind
	}
	return n
}

// placeOf returns where a file of the example goes.
func placeOf(file string) string {
	for _, place := range moves {
		if rest, fits := strings.CutPrefix(file, place[0]); fits {
			return place[1] + rest
		}
	}
	return file
}

// isIn reports whether a list has the file, a pattern that matches it, or a folder of it.
func isIn(file string, list []string) bool {
	return slices.ContainsFunc(list, func(entry string) bool {
		matches, _ := path.Match(entry, file)
		return matches || strings.HasPrefix(file, entry+"/")
	})
}
