package tutorial

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// program returns the source of each declaration of the program in a folder, without white space,
// which gofmt changes when a neighbour changes.
func program(folder string) (map[string]string, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, err
	}
	sources := map[string]string{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		found, err := declarations(file)
		if err != nil {
			return nil, err
		}
		for _, declaration := range found {
			for i, name := range declaration.names {
				sources[name] = strings.Join(strings.Fields(declaration.specs[i]), " ")
			}
		}
	}
	return sources, nil
}

// checkCoverage returns the declarations that are new, different or gone in the program of a
// chapter, and that the chapter neither shows in a listing nor names in `code`.
func checkCoverage(p *page, folder string, before, after map[string]string) (problems []string) {
	shown := map[string]bool{}
	for _, b := range p.blocks {
		path, name, _ := strings.Cut(b.detail, " ")
		if b.directive != "code" || filepath.Dir(p.beside(path)) != filepath.Clean(folder) {
			continue
		}
		found, err := declarations(filepath.Join(root, p.beside(path)))
		if err != nil {
			problems = append(problems, p.at(b, "%v", err))
		}
		for _, declaration := range found {
			if name == "" || slices.Contains(declaration.names, name) {
				for _, shownToo := range declaration.names {
					shown[shownToo] = true
				}
			}
		}
	}
	prose := p.prose()
	for _, name := range slices.Sorted(maps.Keys(union(before, after))) {
		short := name[strings.LastIndex(name, ".")+1:]
		named, _ := regexp.MatchString("`([A-Za-z]*\\.)?"+short+"(\\(\\))?`", prose)
		if before[name] != after[name] && !shown[name] && !named {
			problems = append(problems, fmt.Sprintf("%s: %s is %s, but is neither shown nor named",
				p.path, name, change(before[name], after[name])))
		}
	}
	return problems
}

// union returns what is in one of the maps.
func union(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// change says what became of a declaration.
func change(before, after string) string {
	switch {
	case before == "":
		return "new"
	case after == "":
		return "gone"
	}
	return "different"
}

// chapters returns the pages of the tutorial and the folders of their programs, in order; the last
// program is the repository's own.
func chapters(t *testing.T) (pages []*page, folders []string) {
	t.Helper()
	for _, p := range allPages(t) {
		if match, _ := filepath.Match("docs/tutorial/[0-9][0-9]-*.md", p.path); match {
			pages = append(pages, p)
			folders = append(folders, strings.TrimSuffix(p.path, ".md"))
		}
	}
	if len(pages) < 2 {
		t.Fatal("the tutorial has no chapters")
	}
	folders[len(folders)-1] = "."
	return pages, folders
}

func TestChaptersExplainWhatTheyChange(t *testing.T) {
	before := map[string]string{}
	pages, folders := chapters(t)
	for i, folder := range folders {
		after, err := program(filepath.Join(root, folder))
		if err != nil {
			t.Fatal(err)
		}
		if len(after) == 0 {
			t.Errorf("%s: there is no program in %s", pages[i].path, folder)
		}
		report(t, checkCoverage(pages[i], folder, before, after))
		before = after
	}
}

func TestChaptersThatLeaveSomethingOutAreNoticed(t *testing.T) {
	const folder = "docs/tutorial/04-queue"
	queue, err := program(filepath.Join(root, folder))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, text, old, want string
	}{
		{"new", "It is a function.", "", "Controller.runWorker is new"},
		{"different", "It runs `runWorkers`.", "func f() {}", "Controller.runWorker is different"},
		{"shown in another program",
			"<!-- code: 05-owning/controller.go Controller.runWorker -->\n```go\n```",
			"", "Controller.runWorker is new"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			before := maps.Clone(queue)
			before["Controller.runWorker"] = test.old
			expectProblem(t, checkCoverage(brokenPage(t, test.text), folder, before, queue), test.want)
		})
	}
	t.Run("gone", func(t *testing.T) {
		before := maps.Clone(queue)
		before["work"] = "func work() {}"
		problems := checkCoverage(brokenPage(t, "It works."), folder, before, queue)
		expectProblem(t, problems, "work is gone")
	})
	for _, text := range []string{
		"`runWorker` is new.", "`Controller.runWorker` is new.", "`runWorker()` is new.",
		"<!-- code: 04-queue/controller.go Controller.runWorker -->\n```go\n```",
		"<!-- code: 04-queue/controller.go -->\n```go\n```",
	} {
		before := maps.Clone(queue)
		delete(before, "Controller.runWorker")
		problems := checkCoverage(brokenPage(t, text), folder, before, queue)
		if len(problems) > 0 {
			t.Errorf("%q: got %q, want no problem", text, problems)
		}
	}
}
