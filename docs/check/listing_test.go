package check

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	// The program that is put together needs what the root's program needs.
	_ "example.com/sample-controller/internal/process"
)

// declaration is a top-level declaration of a Go file.
type declaration struct {
	names  []string // several for a group; Type.Method for a method, even of a generic type
	source string   // with its comment
}

// declarations returns the top-level declarations of a Go file.
func declarations(path string) ([]declaration, error) {
	source, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, source, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	text := func(doc *ast.CommentGroup, node ast.Node) string {
		begin := node.Pos()
		if doc != nil {
			begin = doc.Pos()
		}
		return string(source[files.Position(begin).Offset:files.Position(node.End()).Offset])
	}
	var found []declaration
	for _, node := range file.Decls {
		switch node := node.(type) {
		case *ast.FuncDecl:
			name := node.Name.Name
			if node.Recv != nil {
				receiver := text(nil, node.Recv.List[0].Type)
				receiver, _, _ = strings.Cut(receiver, "[") // without type parameters
				name = strings.TrimPrefix(receiver, "*") + "." + name
			}
			found = append(found, declaration{[]string{name}, text(node.Doc, node)})
		case *ast.GenDecl:
			group := declaration{source: text(node.Doc, node)}
			for _, spec := range node.Specs {
				group.names = append(group.names, specNames(spec)...)
			}
			if len(group.names) > 0 {
				found = append(found, group)
			}
		}
	}
	return found, nil
}

// specNames returns the names that a part of a declaration declares: none for an import.
func specNames(spec ast.Spec) (names []string) {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		return []string{spec.Name.Name}
	case *ast.ValueSpec:
		for _, name := range spec.Names {
			names = append(names, name.Name)
		}
	}
	return names
}

// listing returns what a directive names: a file ("PATH"), a declaration ("PATH NAME"), or the end of
// one ("PATH NAME from TEXT"), which begins with the only line that has that text.
func listing(p *page, detail string) ([]string, error) {
	detail, from, _ := strings.Cut(detail, " from ")
	path, name, _ := strings.Cut(detail, " ")
	path = filepath.Join(root, p.beside(path))
	if name == "" {
		text, err := os.ReadFile(path)
		return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n"), err
	}
	found, err := declarations(path)
	if err != nil {
		return nil, err
	}
	for _, declaration := range found {
		if slices.Contains(declaration.names, name) {
			if n := strings.Count(declaration.source, from); from != "" && n != 1 {
				return nil, fmt.Errorf("%s: %q is %d times in %s, want once", path, from, n, name)
			}
			before, _, _ := strings.Cut(declaration.source, from)
			return strings.Split(declaration.source[strings.LastIndex(before, "\n")+1:], "\n"), nil
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

// assemble puts the program of a chapter together, and returns its folder below docs.
func assemble(t *testing.T, chapter string) string {
	t.Helper()
	command := exec.Command(filepath.Join(root, "docs/tutorial/assemble"), chapter)
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", command, err, output)
	}
	return strings.TrimSpace(string(output))
}
