package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strings"
)

// merge returns a Go file with several variants: if the environment has the name of one, each
// function does what that variant of the file has in its place. So they are linked only once, which
// takes most of the time.
func merge(file string, variants map[string]string) (string, error) {
	finished, err := bodies(file)
	if err != nil {
		return "", err
	}
	choices := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(variants)) {
		other, err := bodies(variants[name])
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		for header, body := range other {
			if body != finished[header] {
				choices[header] += fmt.Sprintf("if learnOS.Getenv(%q) != \"\" %s else ", name, body)
			}
		}
	}
	for header, choice := range choices {
		body := finished[header]
		file = strings.Replace(file, header+body, header+"{\n"+choice+body+"}", 1)
	}
	if len(choices) == 0 {
		return file, nil
	}
	return strings.Replace(file, "\nimport ", "\nimport learnOS \"os\"\n\nimport ", 1), nil
}

// bodies returns the bodies of the functions of a Go file, by what is before them. It fails if the
// file imports what it does not need: merged with others, it would compile.
func bodies(file string) (map[string]string, error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), "", file, 0)
	if err != nil {
		return nil, err
	}
	for _, i := range parsed.Imports {
		names := strings.Split(strings.Trim(i.Path.Value, `"`), "/")
		if i.Name != nil {
			names = []string{i.Name.Name}
		}
		if !slices.ContainsFunc(parsed.Unresolved, func(id *ast.Ident) bool {
			return slices.Contains(names, id.Name)
		}) {
			return nil, fmt.Errorf("it does not need %s", i.Path.Value)
		}
	}
	all := map[string]string{}
	for _, declaration := range parsed.Decls {
		if f, ok := declaration.(*ast.FuncDecl); ok && f.Body != nil {
			// Positions count from 1.
			all[file[f.Pos()-1:f.Body.Pos()-1]] = file[f.Body.Pos()-1 : f.Body.End()-1]
		}
	}
	return all, nil
}
