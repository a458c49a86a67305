package tutorial

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
	"time"

	"example.com/sample-controller/lens/model"
)

// recording is a file of docs/lens/recordings, which 'make lens-record' writes.
type recording struct {
	Title   string             `json:"title"`
	About   string             `json:"about"`
	Program string             `json:"program"`
	Start   time.Time          `json:"start"`
	Steps   []json.RawMessage  `json:"steps"`
	Seen    []model.Seen       `json:"seen"`
	Code    map[string]excerpt `json:"code"`
}

// excerpt is a declaration of the program.
type excerpt struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Name string `json:"name"`
	Text string `json:"text"`
}

// logLine matches what a program logs: its file, and its message.
var logLine = regexp.MustCompile(`^[IWEF]\d{4} \S+ +\d+ (\w+\.go):\d+\] "([^"]*)"`)

// steps returns what the model makes of what was seen.
func (r *recording) steps() (steps []json.RawMessage, err error) {
	m := model.New(r.Start, "")
	for _, seen := range r.Seen {
		step := m.See(seen)
		if len(step.Set) == 0 && len(step.Drop) == 0 {
			continue
		}
		text, err := json.Marshal(step)
		if err != nil {
			return nil, err
		}
		steps = append(steps, text)
	}
	return steps, nil
}

// stale returns what is no longer as it was recorded. readFile reads files of the repository.
func (r *recording) stale(readFile func(string) string) (problems []string) {
	for place, code := range r.Code {
		if !strings.Contains(readFile(code.File), code.Text) {
			problems = append(problems, fmt.Sprintf("the code at %s, %s, has changed", place, code.Name))
		}
	}
	for _, seen := range r.Seen {
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

func readRecording(t *testing.T, file string) (text []byte, r *recording) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := bytes.IndexByte(text, '{'), bytes.LastIndexByte(text, '}')
	r = &recording{}
	if err := json.Unmarshal(text[begin:end+1], r); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return text, r
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
		text, r := readRecording(t, file)
		for _, problem := range r.stale(readOrNothing) {
			t.Errorf("%s: %s; 'make lens-record' records it anew", file, problem)
		}
		steps, err := r.steps()
		if err != nil {
			t.Fatal(err)
		}
		want, got := bytes.Join(raw(steps), []byte(",\n")), bytes.Join(raw(r.Steps), []byte(",\n"))
		if bytes.Equal(got, want) {
			continue
		}
		if !*update {
			t.Errorf("%s: the model makes other steps of what was seen; -update writes them", file)
			continue
		}
		if err := os.WriteFile(file, bytes.Replace(text, got, want, 1), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func raw(messages []json.RawMessage) (all [][]byte) {
	for _, message := range messages {
		all = append(all, message)
	}
	return all
}

func TestStaleRecordingsAreNoticed(t *testing.T) {
	const log = `I1122 10:00:00.000000       1 main.go:1] "Working" foo="a/b"`
	r := &recording{
		Program: "program", Seen: []model.Seen{{Log: log}},
		Code: map[string]excerpt{"sync": {File: "program/main.go", Name: "sync", Text: "func sync() {}"}},
	}
	for text, want := range map[string]string{
		`func sync() {} "Working"`: "",
		`func sync(){} "Working"`:  "the code at sync, sync, has changed",
		`func sync() {} "Resting"`: `main.go no longer logs "Working"`,
	} {
		problems := r.stale(func(string) string { return text })
		if got := strings.Join(problems, ", "); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}
