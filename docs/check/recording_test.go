package check

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/lens/model"
	"example.com/sample-controller/lens/wire"
)

// logLine matches what a program logs: its file, and its message.
var logLine = regexp.MustCompile(`^[IWEF]\d{4} \S+ +\d+ (\w+\.go):\d+\] "([^"]*)"`)

// stale returns what is no longer as it was recorded. readFile reads files of the repository.
func stale(r *model.Recording, all []model.Seen, readFile func(string) string) (problems []string) {
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
		r := must.Get(model.ReadRecording(file))(t)
		all, steps, err := r.Again()
		must.Do(t, err)
		for _, problem := range stale(r, all, readOrNothing) {
			t.Errorf("%s: %s; 'make lens-record' records it anew", file, problem)
		}
		for _, problem := range untrue(t, all, steps) {
			t.Errorf("%s: %s", file, problem)
		}
		if slices.EqualFunc(steps, r.Steps, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
			continue
		}
		if !*update {
			t.Errorf("%s: the model makes other steps of what was seen; -update writes them", file)
			continue
		}
		r.Steps = steps
		must.Replace(t, file, must.Get(r.Script())(t))
	}
}

// untrue returns what is not true of what a page shows: a write that is not the work of a sync
// although the program has a queue; a sync that wrote and is said to have had nothing to write; an
// effect that stands before its cause.
func untrue(t *testing.T, all []model.Seen, steps []json.RawMessage) (problems []string) {
	notes, spans := shown(t, steps)
	hasQueue := slices.ContainsFunc(notes, func(n model.Note) bool {
		return strings.Contains(n.Text, "begin to take keys from the queue")
	})
	writes := countWrites(all)
	wrote := map[string]bool{} // the key of a sync, and its end
	for _, span := range spans {
		for i, id := range span.Causes {
			cause, ok := spans[id]
			if !ok || i > 0 && span.What == "queue" { // it waited already
				continue
			}
			if cause.What == "sync" && span.End <= cause.End && isWrite.MatchString(span.Label) {
				wrote[cause.Key+cause.End.String()] = true
				writes--
			}
			from, to := noteOf(cause, notes), noteOf(span, notes)
			if cause.Begin > span.Begin || from > to && to >= 0 {
				problems = append(problems, fmt.Sprintf("%s %q stands before its cause, %s %q",
					span.What, span.Label, cause.What, cause.Label))
			}
		}
	}
	if hasQueue && writes != 0 {
		problems = append(problems, fmt.Sprintf("%d writes are of no sync", writes))
	}
	for _, note := range notes {
		if hasQueue && ofNoSync.MatchString(note.Text) {
			problems = append(problems, note.Text)
		}
		if strings.HasSuffix(note.Text, "had nothing to write.") && wrote[note.Key+note.At.String()] {
			problems = append(problems, fmt.Sprintf("%q, but it wrote", note.Text))
		}
	}
	return problems
}

var (
	// isWrite matches a request that writes something other than an Event or a Lease.
	isWrite  = regexp.MustCompile(`^(create|update|patch|delete) ([^el]|e[^v]|l[^e])`)
	ofNoSync = regexp.MustCompile(`^The program (creates|updates|patches|deletes) `)
)

func countWrites(all []model.Seen) (writes int) {
	for _, seen := range all {
		e := seen.Wire
		if e != nil && e.Kind == wire.RequestArrived && isWrite.MatchString(e.Verb+" "+e.Resource) {
			writes++
		}
	}
	return writes
}

// shown returns the sentences in the order of the page, and the bars of the time line.
func shown(
	t *testing.T, steps []json.RawMessage,
) (notes []model.Note, spans map[string]model.Span) {
	spans = map[string]model.Span{}
	for _, text := range steps {
		var step struct{ Set map[string]json.RawMessage }
		err := json.Unmarshal(text, &step)
		for _, id := range slices.Sorted(maps.Keys(step.Set)) {
			var note model.Note
			var span model.Span
			switch kind, _, _ := strings.Cut(id, "/"); kind {
			case "note":
				err = cmp.Or(err, json.Unmarshal(step.Set[id], &note))
				notes = append(notes, note)
			case "span":
				err = cmp.Or(err, json.Unmarshal(step.Set[id], &span))
				spans[id] = span
			}
		}
		must.Do(t, err)
	}
	slices.SortStableFunc(notes, func(a, b model.Note) int { return cmp.Compare(a.At, b.At) })
	return notes, spans
}

// noteOf returns which of the notes says what a bar shows, or -1.
func noteOf(span model.Span, notes []model.Note) int {
	label := regexp.QuoteMeta(span.Label)
	_, what, _ := strings.Cut(label, " ")
	text, ok := map[string]string{
		"user": "^" + label + `\.$`, "request": what + `\. .* answers `, "watch": "^The watch of ",
		"queue": " goes into the queue: ", "sync": " starts to sync ",
	}[span.What]
	says := regexp.MustCompile(text)
	return slices.IndexFunc(notes, func(n model.Note) bool {
		isNow := span.Begin <= n.At && n.At <= span.End && (span.What != "watch" || n.At == span.End)
		return ok && isNow && n.Key == span.Key && says.MatchString(n.Text)
	})
}
