package main

import (
	"io/fs"
	"path"
	"strings"

	"example.com/sample-controller/lens/model"
	"example.com/sample-controller/lens/source"
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
// its source, and is "" if nobody knows where that is.
func findCode(root fs.FS, folder, place string) (*model.Code, error) {
	if folder == "" {
		return nil, nil
	}
	files, _ := fs.Glob(root, path.Join(folder, "*.go")) // a folder with an odd name has none
	declared := map[string]*model.Code{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := fs.ReadFile(root, file)
		if err != nil {
			return nil, err
		}
		found, err := source.Declarations(file, text)
		if err != nil {
			return nil, err
		}
		for _, d := range found {
			name := d.Names[0][strings.LastIndex(d.Names[0], ".")+1:] // without the type of a method
			declared[name] = &model.Code{File: file, Line: d.Line, Name: name, Text: d.Text}
		}
	}
	for _, name := range functions[place] {
		if found := declared[name]; found != nil {
			return found, nil
		}
	}
	return nil, nil
}
