package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// What a fork has: patterns of path.Match, or folders. What is generated is not copied, but generated
// again. The tests of packages in internal are not copied either.
var (
	// The parts of every controller.
	frame = []string{
		".gitattributes", ".gitignore", ".golangci.yml", "LICENSE", "Makefile", "go.mod", "go.sum", library,
		"hack/audit-policy.yaml", "hack/boilerplate.go.txt", "hack/cluster", "hack/compile", "hack/demo",
		"hack/env", "hack/lint", "hack/test", "hack/tools", "hack/update-codegen.sh",
		"internal/[^p]*/*.go", "internal/patch", "internal/process", "test/go.mod",
		"test/go.sum",
	}
	// What tests need of any controller.
	forTests = []string{
		"internal/testing/cluster/cluster.go", "internal/testing/fakes", "internal/testing/must",
		"internal/testing/process/[ep]*.go", "internal/testing/setting",
		"internal/testing/suite/[^f]*.go", // and not frame*.go
		"internal/testing/suite/audit",
	}
	// The controller of Foos.
	ofFoos = []string{
		"controller*.go", "deployment*.go", "explore_test.go", "main*.go", "status.go", "writes.go",
		"pkg", "artifacts/deploy/*", "artifacts/deploy/base", "artifacts/examples",
		"internal/testing/scenarios", "test/conformance/admission_test.go",
		"test/conformance/deployment_test.go", "test/conformance/harness_test.go",
		"test/conformance/process_test.go", "test/conformance/rbac_test.go",
	}
	// The controller of Websites.
	ofWebsites = []string{
		example + "/*.go", example + "/artifacts/*", example + "/artifacts/deploy",
		example + "/artifacts/monitoring", example + "/conformance",
		example + "/meaning", example + "/outside", example + "/pkg", example + "/registry",
		"internal/testing/suite/frame*.go", parts + "/owned",
	}
)

// templates is the folder of the fork's own files, which are in this repository's names.
const templates = "hack/fork/"

// example is the folder of a controller that can be forked in place of the one at the root.
const example = "examples/website"

// parts is the folder of what the example shares with other ones.
const parts = "examples/internal"

// paths says where the files of the example go, in its files, too.
var paths = strings.NewReplacer(
	"example.com/sample-controller/examples/website", "example.com/sample-controller",
	"examples/internal/", "internal/",
	"examples/website/conformance", "test/conformance",
	"examples/website/artifacts/deploy", "artifacts/deploy",
	"examples/website/artifacts/monitoring", "artifacts/monitoring",
	"examples/website/artifacts/", "artifacts/examples/",
	"examples/website/", "",
	"-C examples ", "", "./website/registry", "./registry", "./website", ".",
	`flag.Bool("cluster", false,`, `flag.Bool("cluster", true,`,
	"go -C examples build -o ../.local/bin/website-controller ./website", "make -s build",
	`"../../.."`, `"../.."`,
	`"../artifacts/deploy/`, `"../../artifacts/deploy/`,
	`"../artifacts/monitoring/`, `"../../artifacts/monitoring/`,
	`"../artifacts/`, `"../../artifacts/examples/`,
	`"artifacts/crd.yaml"`, `"artifacts/examples/crd.yaml"`,
)

// repository is a repository, as it is in the working tree.
type repository struct {
	root  string
	files map[string]string // what git tracks, path to text
}

// openRepository reads the repository that contains the folder.
func openRepository(ctx context.Context, dir string) (*repository, error) {
	root, err := output(ctx, dir, "git", "rev-parse", "--show-toplevel")
	if err == nil {
		_, err = os.Stat(filepath.Join(root, templates, "main.go"))
	}
	if err != nil {
		return nil, fmt.Errorf("this folder is a copy without a git repository of its own, and git "+
			"says what is forked: clone the repository, and run this there (%w)", err)
	}
	return readFiles(ctx, root)
}

// readFiles reads the files that git tracks in a repository.
func readFiles(ctx context.Context, root string) (*repository, error) {
	r := &repository{root: root, files: map[string]string{}}
	list, err := output(ctx, root, "git", "ls-files", "-z")
	if err != nil {
		return nil, err
	}
	for file := range strings.SplitSeq(strings.TrimRight(list, "\x00"), "\x00") {
		info, err := os.Lstat(filepath.Join(root, file))
		switch {
		case errors.Is(err, os.ErrNotExist): // deleted in the working tree
			continue
		case err != nil:
			return nil, err
		case !info.Mode().IsRegular():
			return nil, fmt.Errorf("%s is not a regular file, and this program cannot fork anything else", file)
		}
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return nil, err
		}
		r.files[file] = string(text)
	}
	return r, nil
}

// isIn reports whether a list has the file, a pattern that matches it, or a folder of it.
func isIn(file string, list []string) bool {
	return slices.ContainsFunc(list, func(entry string) bool {
		matches, _ := path.Match(entry, file)
		return matches || strings.HasPrefix(file, entry+"/")
	})
}

// isGenerated reports whether hack/update-codegen.sh makes the file.
func isGenerated(text string) bool {
	head := text[:min(len(text), 500)]
	return strings.Contains(head, "// Code generated by ") ||
		strings.Contains(head, "controller-gen.kubebuilder.io/version:")
}

// approval is in a line that only the API of a group of Kubernetes has.
var approval = regexp.MustCompile(`(?m)^.*api-approved\.kubernetes\.io.*\n`)

// copied returns the files of a fork, in the old names.
func (r *repository) copied(fromExample bool) map[string]string {
	list, own := slices.Concat(frame, forTests, ofFoos), templates+"foo/"
	if fromExample {
		list, own = slices.Concat(frame, forTests, ofWebsites), templates+"website/"
	}
	files := map[string]string{}
	for file, text := range r.files {
		page, isOwn := strings.CutPrefix(file, own)
		if !isOwn {
			page, isOwn = strings.CutPrefix(file, templates+"both/")
		}
		page, _ = strings.CutSuffix(page, ".tmpl") // so that nothing takes it for a page of this repository
		switch {
		case isOwn:
			files[page] = text
		case !isIn(file, list) || isGenerated(text):
		case isIn(file, []string{"internal", parts}) && strings.HasSuffix(file, "_test.go"):
		case isIn(file, []string{example, parts}):
			files[paths.Replace(file)] = paths.Replace(text)
		default:
			files[file] = approval.ReplaceAllString(text, "")
		}
	}
	return files
}

// places returns the lines and the names of files in which find finds something.
func places(files map[string]string, find func(file, line string) string) (found []string) {
	for _, file := range sortedKeys(files) {
		if path.Ext(file) == ".sum" || isIn(file, []string{library}) {
			continue // checksums may hold any letters
		}
		for i, line := range append([]string{file}, strings.Split(files[file], "\n")...) {
			if still := find(file, line); still != "" {
				found = append(found, fmt.Sprintf("%s:%d: still says %q: %s", file, i, still,
					strings.TrimSpace(line)))
			}
		}
	}
	return found
}

// leftovers returns the places that still have old names: this program does not understand them,
// and it must not guess. It first cuts out the new names, which may contain an old one. In generated
// files, it looks for the kind only with a capital: in lower case, that may be part of a word of
// Kubernetes' own, such as footprint, or comes from files that are checked.
func leftovers(files map[string]string, old []names, new names) []string {
	newKind, newPlural := new.lower()
	return places(files, func(file, line string) string {
		generated := isGenerated(files[file])
		line = strings.ReplaceAll(line, old[len(old)-1].module+"/"+library, "\x00")
		withKinds := line
		for _, name := range byLength(new.kind, new.plural, new.goGroup) {
			withKinds = strings.ReplaceAll(withKinds, name, "\x00")
		}
		line = strings.ToLower(line)
		for _, name := range byLength(strings.ToLower(new.module), new.group, new.name, new.pkg, newKind,
			newPlural) {
			line = strings.ReplaceAll(line, name, "\x00")
		}
		for _, old := range old {
			oldKind, _ := old.lower()
			if generated && strings.Contains(withKinds, old.kind) {
				return old.kind
			}
			for _, name := range byLength(old.module, old.group, old.name, old.pkg, oldKind) {
				if strings.Contains(line, name) && (name != oldKind || !generated) {
					return name
				}
			}
		}
		return ""
	})
}

// byLength sorts the longest name first, because one may contain another.
func byLength(names ...string) []string {
	slices.SortStableFunc(names, func(a, b string) int { return len(b) - len(a) })
	return names
}

// unclean returns an error that lists places, or nil if there are none.
func unclean(places []string) error {
	if len(places) == 0 {
		return nil
	}
	if len(places) > 10 {
		places = append(places[:10], fmt.Sprintf("and %d more", len(places)-10))
	}
	return fmt.Errorf("the fork would not be clean:\n%s", strings.Join(places, "\n"))
}
