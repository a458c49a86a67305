package check

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// program returns the source of each declaration of the program in a folder. White space does not
// count, because gofmt aligns a line with its neighbours.
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

// chapter is a program of the tutorial, and the pages that explain what is new in it.
type chapter struct {
	folder string
	pages  []*page
}

// checkCoverage returns the declarations that a chapter changes without saying so. They are new,
// different or gone in its program, and no page of it shows them in a listing or names them in
// `code`.
func checkCoverage(c chapter, before, after map[string]string) (problems []string) {
	shown := map[string]bool{}
	prose, paths := "", []string{}
	for _, p := range c.pages {
		found, err := shownDeclarations(p, c.folder)
		if err != nil {
			problems = append(problems, fmt.Sprintf("%s: %v", p.path, err))
		}
		shown = union(shown, found)
		prose += p.prose() + "\n"
		paths = append(paths, p.path)
	}
	for _, name := range slices.Sorted(maps.Keys(union(before, after))) {
		short := name[strings.LastIndex(name, ".")+1:]
		named, _ := regexp.MatchString("`([A-Za-z]*\\.)?"+short+"(\\(\\))?`", prose)
		if before[name] != after[name] && !shown[name] && !named {
			problems = append(problems, fmt.Sprintf("%s: %s is %s, but is neither shown nor named",
				strings.Join(paths, ", "), name, change(before[name], after[name])))
		}
	}
	return problems
}

// shownDeclarations returns the declarations of the program in a folder that a page shows in
// listings.
func shownDeclarations(p *page, folder string) (map[string]bool, error) {
	shown := map[string]bool{}
	for _, b := range p.blocks {
		path, name, _ := strings.Cut(b.detail, " ")
		if b.directive != "code" || filepath.Dir(p.beside(path)) != filepath.Clean(folder) {
			continue
		}
		found, err := declarations(filepath.Join(root, p.beside(path)))
		if err != nil {
			return shown, err
		}
		for _, declaration := range found {
			if name == "" || slices.Contains(declaration.names, name) {
				for _, shownToo := range declaration.names {
					shown[shownToo] = true
				}
			}
		}
	}
	return shown, nil
}

// union returns the entries of both maps.
func union[V any](a, b map[string]V) map[string]V {
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

// examplesFolder has programs that do not grow from chapter to chapter.
const examplesFolder = "examples/"

// isAboutExample reports whether a page shows code of a program in examplesFolder.
func (p *page) isAboutExample() bool {
	return slices.ContainsFunc(p.blocks, func(b *block) bool {
		return b.directive == "code" && strings.HasPrefix(p.beside(b.detail), examplesFolder)
	})
}

// chapters returns the chapters of the tutorial in order, except for those about an example. Pages
// without a program of their own are about the repository's own program. It is the last one that
// grows from chapter to chapter: the programs after it stand alone.
func chapters(t *testing.T) (all []chapter) {
	t.Helper()
	for _, p := range allPages(t) {
		if p.chapter() == 0 || p.isAboutExample() {
			continue
		}
		folder := strings.TrimSuffix(p.path, ".md")
		if _, err := os.Stat(filepath.Join(root, folder)); err != nil {
			folder = "."
		}
		last := len(all) - 1
		if last >= 0 && all[last].folder == folder {
			all[last].pages = append(all[last].pages, p)
			continue
		}
		if last >= 0 && all[last].folder == "." {
			continue
		}
		all = append(all, chapter{folder: folder, pages: []*page{p}})
	}
	if !slices.ContainsFunc(all[1:], func(c chapter) bool { return c.folder == "." }) {
		t.Fatal("the tutorial does not lead to the repository's own program")
	}
	return all
}

func TestChaptersExplainWhatTheyChange(t *testing.T) {
	before, finished := map[string]string{}, false
	for _, c := range chapters(t) {
		after, err := program(filepath.Join(root, c.folder))
		if err != nil {
			t.Fatal(err)
		}
		if len(after) == 0 {
			t.Errorf("%s: there is no program in %s", c.pages[0].path, c.folder)
		}
		report(t, checkCoverage(c, before, after))
		if !finished {
			before = after
		}
		finished = finished || c.folder == "."
	}
}

func TestChaptersThatLeaveSomethingOutAreNoticed(t *testing.T) {
	const folder = "docs/tutorial/04-queue"
	queue, err := program(filepath.Join(root, folder))
	if err != nil {
		t.Fatal(err)
	}
	explainedBy := func(texts ...string) chapter {
		c := chapter{folder: folder}
		for _, text := range texts {
			c.pages = append(c.pages, brokenPage(t, text))
		}
		return c
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
			expectProblem(t, checkCoverage(explainedBy(test.text), before, queue), test.want)
		})
	}
	t.Run("gone", func(t *testing.T) {
		before := maps.Clone(queue)
		before["work"] = "func work() {}"
		problems := checkCoverage(explainedBy("It works."), before, queue)
		expectProblem(t, problems, "work is gone")
	})
	for _, text := range []string{
		"`runWorker` is new.", "`Controller.runWorker` is new.", "`runWorker()` is new.",
		"<!-- code: 04-queue/controller.go Controller.runWorker -->\n```go\n```",
		"<!-- code: 04-queue/controller.go -->\n```go\n```",
	} {
		before := maps.Clone(queue)
		delete(before, "Controller.runWorker")
		problems := checkCoverage(explainedBy("It works.", text), before, queue)
		if len(problems) > 0 {
			t.Errorf("%q: got %q, want no problem", text, problems)
		}
	}
}
