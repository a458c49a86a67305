package main

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"go/format"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/txtar"
)

// proveFile is what a proof begins with. playFile plays what a question is about, and prints what
// the controller asks of the API server.
var (
	//go:embed prove.txt
	proveFile string
	//go:embed play.txt
	playFile string
)

// exercise is a file in exercises/: lines "key: value", and then a txtar archive of a text and its
// sections, each of which begins with a line such as "-- hint --".
type exercise struct {
	name   string // of its file, without the number
	values map[string]string
	text   string
	hints  []string
	from   string // what the finished program has, and the bug in its place
	to     string
	begins string // what the learner begins with, and what solves the exercise: see write
	solves string
	wrong  []mistake
	choice map[string]option // of predict: by letter
	play   string            // of predict: what the simulation does
}

// mistake is what somebody may plausibly write who has not understood the bug.
type mistake struct{ name, text string }

// option is an answer, and what the simulation prints if it is right.
type option struct{ text, sees string }

func (e *exercise) kind() string { return e.values["kind"] }

// id is the name of its bug as a variant: see merge.
func (e *exercise) id() string { return "LEARN-" + e.name }

// folder is the package that is tested, and file the one with the bug, seen from the root.
func (e *exercise) folder() string { return cmp.Or(e.values["folder"], path.Dir(e.values["file"])) }
func (e *exercise) file() string   { return e.values["file"] }

// edits is the name of the file that the learner edits.
func (e *exercise) edits() string {
	switch e.kind() {
	case "predict":
		return "answer.txt"
	case "prove":
		return "prove_test.go"
	default:
		return path.Base(e.file())
	}
}

// readExercises reads all exercises, in order.
func readExercises(folder string) (all []*exercise, err error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.txt"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("found no exercises in %s: %w", folder, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		_, name, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".txt"), "-")
		e := &exercise{name: name, values: map[string]string{}, choice: map[string]option{}}
		if err := e.parse(string(text)); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, e)
	}
	return all, nil
}

func (e *exercise) parse(text string) error {
	head, text, _ := strings.Cut(text, "\n\n")
	for line := range strings.SplitSeq(head, "\n") {
		key, value, found := strings.Cut(line, ": ")
		if !found {
			return fmt.Errorf("%q: want a key and a value", line)
		}
		if old := e.values[key]; old != "" {
			value = old + "\n" + value
		}
		e.values[key] = value
	}
	archive := txtar.Parse([]byte(text))
	e.text = strings.Trim(string(archive.Comment), "\n")
	for _, section := range archive.Files {
		e.add(section.Name, strings.Trim(string(section.Data), "\n"))
	}
	switch e.kind() {
	case "predict":
		e.solves = e.values["right"]
	case "prove":
		e.begins = "\t\t// your test"
	default:
		e.begins, e.solves = e.to, e.from
	}
	if len(e.hints) != 2 || e.why() == "" {
		return fmt.Errorf("got %d hints and %q, want 2, and why", len(e.hints), e.why())
	}
	return nil
}

// why says what to keep in mind.
func (e *exercise) why() string { return e.values["why"] }

// add adds a section.
func (e *exercise) add(section, text string) {
	name, rest, _ := strings.Cut(section, ": ")
	switch name {
	case "hint":
		e.hints = append(e.hints, text)
	case "bug":
		e.from, e.to, _ = strings.Cut(text, "\n=>")
		e.to = strings.TrimPrefix(e.to, "\n")
	case "wrong":
		e.wrong = append(e.wrong, mistake{rest, text})
	case "play":
		e.play = text
	case "answer":
		e.solves = text
	default: // a, b or c
		e.choice[name] = option{rest, text}
	}
}

// letters returns the letters of the choices, in order.
func (e *exercise) letters() []string { return slices.Sorted(maps.Keys(e.choice)) }

// put returns the finished file with text in place of what the bug replaces.
func (e *exercise) put(root, text string) ([]byte, error) {
	finished, err := os.ReadFile(filepath.Join(root, e.file()))
	if err != nil {
		return nil, err
	}
	if n := bytes.Count(finished, []byte(e.from)); n != 1 {
		return nil, fmt.Errorf("%s has this %d times, want once:\n%s", e.file(), n, e.from)
	}
	return format.Source(bytes.Replace(finished, []byte(e.from), []byte(text), 1))
}

// write returns what the learner's file is with that text: a letter, a test, or what stands in
// place of the bug.
func (e *exercise) write(root, text string) ([]byte, error) {
	switch e.kind() {
	case "predict":
		return []byte(text), nil
	case "prove":
		return []byte(strings.Replace(proveFile, "BODY", text, 1)), nil
	default:
		return e.put(root, text)
	}
}

// mistakes returns what a learner may plausibly write: for predict, all other letters.
func (e *exercise) mistakes() []mistake {
	all := e.wrong
	for _, letter := range e.letters() {
		if letter != e.values["right"] {
			all = append(all, mistake{text: letter})
		}
	}
	return all
}

// known returns the mistake that is in the learner's file, or "". A test has a mistake if it has
// each line of the mistake that the solution lacks.
func (e *exercise) known(written string) string {
	text := squeeze(written)
	for _, none := range []string{e.to, e.values["unless"]} { // what is in no mistake
		if none = squeeze(none); none != "" && strings.Contains(text, none) {
			return ""
		}
	}
	proves := e.kind() == "prove"
	lacks := func(part string) bool {
		part = squeeze(part)
		has := strings.Contains(text, part) || proves && strings.Contains(squeeze(e.solves), part)
		return !has
	}
	for _, m := range e.wrong {
		parts := []string{m.text}
		if proves {
			parts = strings.Split(m.text, "\n")
		}
		if !slices.ContainsFunc(parts, lacks) {
			return m.name
		}
	}
	return ""
}

// squeeze removes white space, which gofmt and learners change.
func squeeze(text string) string { return strings.Join(strings.Fields(text), "") }
