package check

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"example.com/sample-controller/lens/source"

	// The program that is put together needs what the root's program needs.
	_ "example.com/sample-controller/internal/process"
)

// listing returns what a directive names: a file ("PATH"), a declaration ("PATH NAME"), or the end of
// one ("PATH NAME from TEXT"), which begins with the only line that has that text.
func listing(p *page, detail string) ([]string, error) {
	detail, from, _ := strings.Cut(detail, " from ")
	path, name, _ := strings.Cut(detail, " ")
	path = p.beside(path)
	text, err := readFile(path)
	if err != nil || name == "" {
		return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n"), err
	}
	found, err := source.Declarations(path, text)
	if err != nil {
		return nil, err
	}
	for _, declaration := range found {
		if slices.Contains(declaration.Names, name) {
			if n := strings.Count(declaration.Text, from); from != "" && n != 1 {
				return nil, fmt.Errorf("%s: %q is %d times in %s, want once", path, from, n, name)
			}
			before, _, _ := strings.Cut(declaration.Text, from)
			return strings.Split(declaration.Text[strings.LastIndex(before, "\n")+1:], "\n"), nil
		}
	}
	return nil, fmt.Errorf("%s declares no %s", path, name)
}

// checkListings returns what is wrong with the listings of a page. If a listing only differs from
// the code, it also returns what the listing should be.
func checkListings(p *page) (problems []string, should map[*block][]string) {
	should = map[*block][]string{}
	for _, b := range p.blocks {
		if b.directive != "code" {
			if b.language == "go" {
				problems = append(problems, p.at(b, "a listing without <!-- code: PATH NAME -->"))
			}
			continue
		}
		want, err := listing(p, b.detail)
		if err != nil {
			problems = append(problems, p.at(b, "%v", err))
		} else if !slices.Equal(b.body, want) {
			problems = append(problems, p.at(b, "differs from %s; make docs corrects it", b.detail))
			should[b] = want
		}
	}
	return problems, should
}

func TestListingsAreTheCode(t *testing.T) {
	assemble(t, "08-errors")
	for _, p := range allPages(t) {
		problems, should := checkListings(p)
		if *update && len(should) > 0 {
			p.set(should)
			p.save(t)
			problems, _ = checkListings(p)
		}
		report(t, problems)
	}
}

// readFile returns the text of a file of the repository, or of a program that was put together.
func readFile(file string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		assembled := strings.Replace(file, "docs/tutorial", "docs/.local", 1)
		text, err = os.ReadFile(filepath.Join(root, assembled))
	}
	return text, err
}

// assemble puts the program of a chapter, and those that it is made of, together. It returns its
// folder below docs.
func assemble(t *testing.T, chapter string) string {
	t.Helper()
	command := exec.Command(filepath.Join(root, "docs/tutorial/assemble"), chapter)
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", command, err, output)
	}
	return strings.TrimSpace(string(output))
}
