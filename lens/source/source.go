// Package source finds the declarations of Go files.
package source

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
)

// Declaration is a top-level declaration of a Go file.
type Declaration struct {
	Names []string // several for a group; Type.Method for a method, even of a generic type
	Line  int      // where the text begins
	Text  string   // with its comment
}

// Declarations returns the top-level declarations of a Go file, but for imports.
func Declarations(file string, text []byte) (found []Declaration, err error) {
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	between := func(begin, end token.Pos) string {
		return string(text[set.Position(begin).Offset:set.Position(end).Offset])
	}
	for _, node := range parsed.Decls {
		var names []string
		var doc *ast.CommentGroup
		switch node := node.(type) {
		case *ast.FuncDecl:
			names, doc = []string{node.Name.Name}, node.Doc
			if node.Recv != nil {
				receiver := node.Recv.List[0].Type
				name, _, _ := strings.Cut(between(receiver.Pos(), receiver.End()), "[")
				names[0] = strings.TrimPrefix(name, "*") + "." + names[0]
			}
		case *ast.GenDecl:
			doc = node.Doc
			for _, spec := range node.Specs {
				names = append(names, namesOf(spec)...)
			}
		}
		begin := node.Pos()
		if doc != nil {
			begin = doc.Pos()
		}
		if len(names) > 0 {
			line := set.Position(begin).Line
			found = append(found, Declaration{names, line, between(begin, node.End())})
		}
	}
	return found, nil
}

// namesOf returns the names that a part of a declaration declares: none for an import.
func namesOf(spec ast.Spec) (names []string) {
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
