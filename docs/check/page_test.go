// Package check has only tests. They check all pages of the repository against the code and against
// a control plane.
package check

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"example.com/sample-controller/internal/testing/must"
)

var update = flag.Bool("update", false, "rewrite listings, and with -console also transcripts, "+
	"instead of reporting that they differ")

// root is the repository, seen from this package.
const root = "../.."

// page is a file of Markdown.
type page struct {
	path   string // relative to the repository
	lines  []string
	blocks []*block
}

// block is what stands between two fences. The line right above it says how it is checked:
//
//	<!-- code: PATH NAME -->       a declaration of a Go file, or without NAME a whole file; the end
//	                               of a declaration with "from TEXT" after NAME
//	<!-- edit: PATH -->            a change that the reader makes in a file
//	<!-- not run: REASON -->       commands that no test executes
//	**In NAME terminal:**          a console in another terminal than the last one: the reader's
//	                               own ("your"), or one in which a program goes on
//
// Paths are relative to the page.
type block struct {
	language          string
	directive, detail string // "code", "controller.go NewController"
	label             string // the terminal that the line above it names, if any
	line              int    // of the opening fence, counted from 1
	body              []string
}

var (
	fence     = regexp.MustCompile("^```([a-z]*)$")
	directive = regexp.MustCompile(`^<!-- (code|edit|not run): (.*) -->$`)
	label     = regexp.MustCompile(`^\*\*In (.+) terminal:\*\*$`)

	chapterPath = regexp.MustCompile(`^docs/tutorial/(\d\d)-[^/]*\.md$`)
)

// readersTerminal is the terminal in which a page begins.
const readersTerminal = "your"

func parsePage(path, text string) (*page, error) {
	p := &page{path: path, lines: strings.Split(text, "\n")}
	var open *block
	for i, line := range p.lines {
		match := fence.FindStringSubmatch(line)
		switch {
		case match == nil && strings.HasPrefix(line, "```"):
			return nil, fmt.Errorf("%s:%d: unknown kind of fence: %s", path, i+1, line)
		case match == nil && open != nil:
			open.body = append(open.body, line)
		case match == nil:
		case open == nil:
			open = &block{language: match[1], line: i + 1}
			if i > 0 {
				if found := directive.FindStringSubmatch(p.lines[i-1]); found != nil {
					open.directive, open.detail = found[1], found[2]
				}
				if found := label.FindStringSubmatch(p.lines[i-1]); found != nil {
					open.label = found[1]
				}
			}
			p.blocks = append(p.blocks, open)
		default:
			open = nil
		}
	}
	if open != nil {
		return nil, fmt.Errorf("%s:%d: the block has no closing fence", path, open.line)
	}
	return p, nil
}

// terminal returns the name of the terminal that a console is for.
func (b *block) terminal() string { return cmp.Or(b.label, readersTerminal) }

// chapter returns the number of a page of the tutorial, or 0 for another page.
func (p *page) chapter() int {
	number := 0
	if match := chapterPath.FindStringSubmatch(p.path); match != nil {
		number, _ = strconv.Atoi(match[1])
	}
	return number
}

func (p *page) prose() string {
	var prose []string
	next := 0
	for _, b := range p.blocks {
		prose = append(prose, p.lines[next:b.line-1]...)
		next = b.line + len(b.body) + 1
	}
	return strings.Join(append(prose, p.lines[next:]...), "\n")
}

// set replaces the bodies of blocks of the page. It leaves the line numbers of its blocks as they were.
func (p *page) set(bodies map[*block][]string) {
	for _, b := range slices.Backward(p.blocks) {
		if body, ok := bodies[b]; ok {
			p.lines = slices.Replace(p.lines, b.line, b.line+len(b.body), body...)
			b.body = body
		}
	}
}

func (p *page) save(t testing.TB) {
	t.Helper()
	must.Do(t, os.WriteFile(filepath.Join(root, p.path), []byte(strings.Join(p.lines, "\n")), 0o644))
}

// beside returns the path, relative to the repository, of a file that the page refers to.
func (p *page) beside(path string) string { return filepath.Join(filepath.Dir(p.path), path) }

// at says where in the page a problem is.
func (p *page) at(b *block, format string, args ...any) string {
	return fmt.Sprintf("%s:%d: %s", p.path, b.line, fmt.Sprintf(format, args...))
}

// allPages returns the pages of the repository, the tutorial in the order of its chapters.
func allPages(t *testing.T) (pages []*page) {
	t.Helper()
	files := repositoryFiles(t, "*.md")
	for _, path := range slices.Sorted(maps.Keys(files)) {
		pages = append(pages, must.Get(parsePage(path, files[path]))(t))
	}
	return pages
}

// repositoryFiles returns the texts, by path, of the files that match the pathspecs, but for those
// that git ignores.
func repositoryFiles(t *testing.T, pathspecs ...string) map[string]string {
	t.Helper()
	args := append([]string{"-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard",
		"--"}, pathspecs...)
	list := must.Get(exec.Command("git", args...).Output())(t)
	files := map[string]string{}
	for path := range strings.SplitSeq(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		files[path] = string(must.Get(os.ReadFile(filepath.Join(root, path)))(t))
	}
	return files
}

func report(t *testing.T, problems []string) {
	t.Helper()
	for _, problem := range problems {
		t.Error(problem)
	}
}
