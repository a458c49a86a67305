package check

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	namedTest = regexp.MustCompile("`((?:Test|Example_|Fuzz)\\w+)`")
	testFunc  = regexp.MustCompile(`(?m)^func ((?:Test|Example|Fuzz)\w*)\(`)
)

// allTests returns the names of the tests, examples and fuzz targets of the repository.
func allTests(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && path != root {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		source, err := os.ReadFile(path)
		for _, match := range testFunc.FindAllStringSubmatch(string(source), -1) {
			found[match[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// checkProofs returns the tests that a page names although they do not exist.
func checkProofs(p *page, tests map[string]bool) (problems []string) {
	for _, match := range namedTest.FindAllStringSubmatch(p.prose(), -1) {
		if !tests[match[1]] {
			problems = append(problems, p.at(&block{line: 1}, "there is no test %s", match[1]))
		}
	}
	return problems
}

func TestProofsExist(t *testing.T) {
	tests := allTests(t)
	for _, p := range allPages(t) {
		report(t, checkProofs(p, tests))
	}
}

func TestMissingProofsAreNoticed(t *testing.T) {
	tests := map[string]bool{"TestThis": true}
	page := brokenPage(t, "It is so (`TestThis`), and not otherwise (`TestThat`).")
	expectProblem(t, checkProofs(page, tests), "there is no test TestThat")
}
