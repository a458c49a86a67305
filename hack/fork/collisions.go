package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path"
	"slices"
)

// goFile holds the names in a Go file.
type goFile struct {
	identifiers []string
	aliases     []string // of imports
}

// parseGo finds the names in a Go file.
func parseGo(file, text string) (goFile, error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
	if err != nil {
		return goFile{}, err
	}
	var found goFile
	ast.Inspect(parsed, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.Ident:
			found.identifiers = append(found.identifiers, node.Name)
		case *ast.ImportSpec:
			if node.Name != nil {
				found.aliases = append(found.aliases, node.Name.Name)
			}
		}
		return true
	})
	return found, nil
}

// goPackage holds the names in the Go files of a folder, each with the first file that has it.
type goPackage map[string]string

// parseAll returns the packages by folder, and the aliases of imports in all of them.
func parseAll(files map[string]string) (map[string]goPackage, []string, error) {
	var aliases []string
	packages := map[string]goPackage{}
	for _, file := range sortedKeys(files) {
		if path.Ext(file) != ".go" {
			continue
		}
		found, err := parseGo(file, files[file])
		if err != nil {
			return nil, nil, err
		}
		folder := path.Dir(file)
		if packages[folder] == nil {
			packages[folder] = goPackage{}
		}
		for _, identifier := range found.identifiers {
			if packages[folder][identifier] == "" {
				packages[folder][identifier] = file
			}
		}
		aliases = append(aliases, found.aliases...)
	}
	slices.Sort(aliases)
	return packages, slices.Compact(aliases), nil
}

// checkCollisions refuses a kind that would give two things in the package the same name. It
// ignores scopes, and so refuses some kinds that would compile: the code would be hard to read.
func (p goPackage) checkCollisions(r *renamer, kind string) error {
	from := map[string]string{}
	for _, identifier := range sortedKeys(p) {
		renamed := r.rename("", identifier)
		other, twice := from[renamed]
		from[renamed] = identifier
		refuse := func(why string) error {
			return fmt.Errorf("--kind %s: %s in %s would become %s, which %s; choose another kind, "+
				"like Acme%s", kind, identifier, p[identifier], renamed, why, kind)
		}
		switch {
		case renamed == identifier:
		case token.IsKeyword(renamed):
			return refuse("is a keyword of Go")
		case types.Universe.Lookup(renamed) != nil:
			return refuse("is predeclared in Go")
		case twice:
			return refuse("is also what " + other + " would become")
		case p[renamed] != "" && r.rename("", renamed) == renamed:
			return refuse("is already a name there")
		}
	}
	return nil
}

// sortedKeys returns the keys of m in order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
