package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strings"

	"example.com/sample-controller/lens/model"
)

// functions are those that may be at work at a place of the picture, the best first. A program need
// not have them all.
var functions = map[string][]string{
	"handler": {"addEventHandlers", "handleObject", "setUp"},
	"enqueue": {"enqueueFoo", "handleObject", "addEventHandlers"},
	"queue":   {"processNextWorkItem", "NewController", "addEventHandlers"},
	"worker":  {"runWorker", "processNextWorkItem", "addEventHandlers"},
	"sync":    {"syncHandler", "Reconcile", "addEventHandlers"},
	"create":  {"createDeployment", "syncHandler", "addEventHandlers"},
	"update":  {"updateDeployment", "syncHandler"},
	"delete":  {"deleteOtherDeployments", "syncHandler"},
	"status":  {"updateStatus", "syncHandler"},
	"read":    {"hasChanged", "resolveAlreadyExists", "syncHandler"},
	"cache":   {"newInformerFactories", "inform", "run"},
	"meaning": {"newDeployment", "desiredStatus"},
}

// findCode returns the function that is at work at a place, or nil if the program has none. folder has
// its source.
func findCode(root fs.FS, folder, place string) (*model.Code, error) {
	names, known := functions[place]
	if !known {
		return nil, fmt.Errorf("the picture has no place %q", place)
	}
	files, err := fs.Glob(root, path.Join(folder, "*.go"))
	if err != nil {
		return nil, err
	}
	declared := map[string]*model.Code{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		if err := declarations(root, file, declared); err != nil {
			return nil, err
		}
	}
	for _, name := range names {
		if found := declared[name]; found != nil {
			return found, nil
		}
	}
	return nil, nil
}

// declarations adds the functions of a file, by their names.
func declarations(root fs.FS, file string, declared map[string]*model.Code) error {
	text, err := fs.ReadFile(root, file)
	if err != nil {
		return err
	}
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, declaration := range parsed.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok {
			continue
		}
		begin := function.Pos()
		if function.Doc != nil {
			begin = function.Doc.Pos()
		}
		from, to := set.Position(begin), set.Position(function.End())
		declared[function.Name.Name] = &model.Code{
			File: file, Line: from.Line, Name: function.Name.Name,
			Text: string(text[from.Offset:to.Offset]),
		}
	}
	return nil
}
