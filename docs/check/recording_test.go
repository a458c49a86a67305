package check

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/sample-controller/lens/model"
)

// logLine matches what a program logs: its file, and its message.
var logLine = regexp.MustCompile(`^[IWEF]\d{4} \S+ +\d+ (\w+\.go):\d+\] "([^"]*)"`)

// stale returns what is no longer as it was recorded. readFile reads files of the repository.
func stale(
	r *model.Recording, all []model.Seen, readFile func(string) string,
) (problems []string) {
	for place, code := range r.Code {
		if !strings.Contains(readFile(code.File), code.Text) {
			problems = append(problems, fmt.Sprintf("the code at %s, %s, has changed", place, code.Name))
		}
	}
	for _, seen := range all {
		match := logLine.FindStringSubmatch(seen.Log)
		if match == nil {
			continue
		}
		if text := readFile(path.Join(r.Program, match[1])); text != "" && !strings.Contains(text, match[2]) {
			problems = append(problems, fmt.Sprintf("%s no longer logs %q", match[1], match[2]))
		}
	}
	slices.Sort(problems)
	return slices.Compact(problems)
}

// readOrNothing returns the text of a file of the repository, or "".
func readOrNothing(file string) string {
	text, _ := os.ReadFile(filepath.Join(root, file)) // files of other modules are not there
	return string(text)
}

// With -update, the steps are made anew of what was seen.
func TestRecordingsAreUpToDate(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "docs/lens/recordings/*.js"))
	if err != nil || len(files) < 2 {
		t.Fatalf("got %d recordings (error: %v)", len(files), err)
	}
	for _, file := range files {
		if filepath.Base(file) == "index.js" {
			continue
		}
		r, err := model.ReadRecording(file)
		if err != nil {
			t.Fatal(err)
		}
		all, steps, err := r.Again()
		if err != nil {
			t.Fatal(err)
		}
		for _, problem := range stale(r, all, readOrNothing) {
			t.Errorf("%s: %s; 'make lens-record' records it anew", file, problem)
		}
		if slices.EqualFunc(steps, r.Steps, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
			continue
		}
		if !*update {
			t.Errorf("%s: the model makes other steps of what was seen; -update writes them", file)
			continue
		}
		r.Steps = steps
		text, err := r.Script()
		if err == nil {
			err = os.WriteFile(file, text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestStaleRecordingsAreNoticed(t *testing.T) {
	const log = `I1122 10:00:00.000000       1 main.go:1] "Working" foo="a/b"`
	r := &model.Recording{
		Program: "program",
		Code:    map[string]*model.Code{"sync": {File: "program/main.go", Name: "sync", Text: "func sync() {}"}},
	}
	for text, want := range map[string]string{
		`func sync() {} "Working"`: "",
		`func sync(){} "Working"`:  "the code at sync, sync, has changed",
		`func sync() {} "Resting"`: `main.go no longer logs "Working"`,
	} {
		problems := stale(r, []model.Seen{{Log: log}}, func(string) string { return text })
		if got := strings.Join(problems, ", "); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}
