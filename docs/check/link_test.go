package check

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/sample-controller/docs/internal/anchors"
)

var (
	link   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	toLine = regexp.MustCompile(`#L[0-9]+`)

	recording = regexp.MustCompile(`docs/lens/index\.html#([^` + "`" + `\s]+)`)
	namedTest = regexp.MustCompile("`((?:Test|Example_|Fuzz)\\w+)`")
)

// TestLinksLeadSomewhere finds the links to files, headings and recordings that do not exist, and those
// to lines, because lines move. It also finds tests that a page names as a proof although there is none
// of that name.
func TestLinksLeadSomewhere(t *testing.T) {
	files := repositoryFiles(t, "*_test.go", ":!docs/check")
	tests := strings.Join(slices.Collect(maps.Values(files)), "\n")
	for _, p := range allPages(t) {
		checkLinks(t, p, tests)
	}
}

func checkLinks(t *testing.T, p *page, tests string) {
	report := func(format string, args ...any) { t.Error(p.at(&block{line: 1}, format, args...)) }
	for _, match := range recording.FindAllStringSubmatch(p.prose(), -1) {
		if _, err := os.Stat(filepath.Join(root, "docs/lens/recordings", match[1])); err != nil {
			report("%v", err)
		}
	}
	for _, match := range namedTest.FindAllStringSubmatch(p.prose(), -1) {
		if !strings.Contains(tests, "func "+match[1]+"(") {
			report("there is no test %s", match[1])
		}
	}
	for _, match := range link.FindAllStringSubmatch(p.prose(), -1) {
		target := match[1]
		path, anchor, _ := strings.Cut(target, "#")
		file := filepath.Join(root, p.path)
		if path != "" {
			file = filepath.Join(root, p.beside(path))
		}
		_, err := os.Stat(file)
		text, _ := os.ReadFile(file) // a folder has none
		switch {
		case toLine.MatchString(target):
			report("%s is a link to a line; link to the file", target)
		case strings.Contains(target, "://"):
		case err != nil:
			report("%s leads nowhere", target)
		case anchor != "" && !anchors.Has(string(text), anchor):
			report("%s: there is no heading #%s", target, anchor)
		}
	}
}
