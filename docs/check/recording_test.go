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

	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/lens/model"
)

// logLine matches what a program logs: its file, and its message.
var logLine = regexp.MustCompile(`^[IWEF]\d{4} \S+ +\d+ (\w+\.go):\d+\] "([^"]*)"`)

// stale returns what is no longer as it was recorded.
func stale(r *model.Recording, all []model.Seen) (problems []string) {
	for place, code := range r.Code {
		if !strings.Contains(readOrNothing(code.File), code.Text) {
			problems = append(problems, fmt.Sprintf("the code at %s, %s, has changed", place, code.Name))
		}
	}
	for _, seen := range all {
		match := logLine.FindStringSubmatch(seen.Log)
		if match == nil {
			continue
		}
		if text := readOrNothing(path.Join(r.Program, match[1])); text != "" && !strings.Contains(text, match[2]) {
			problems = append(problems, fmt.Sprintf("%s no longer logs %q", match[1], match[2]))
		}
	}
	slices.Sort(problems)
	return slices.Compact(problems)
}

// readOrNothing returns the text of a file, or "".
func readOrNothing(file string) string {
	text, _ := readFile(file) // files of other modules are not there
	return string(text)
}

// With -update, the steps are made anew of what was seen.
func TestRecordingsAreUpToDate(t *testing.T) {
	assemble(t, "08-errors")
	files, err := filepath.Glob(filepath.Join(root, "docs/lens/recordings/*.js"))
	if err != nil || len(files) < 2 {
		t.Fatalf("got %d recordings (error: %v)", len(files), err)
	}
	for _, file := range files {
		if filepath.Base(file) == "index.js" {
			continue
		}
		r := must.Get(model.ReadRecording(file))(t)
		all, steps, err := r.Again()
		must.Do(t, err)
		for _, problem := range stale(r, all) {
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
		must.Do(t, os.WriteFile(file, r.Script(), 0o644))
	}
}
