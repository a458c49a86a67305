package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// verdict is what the judge says of an exercise.
type verdict struct {
	passed bool
	text   string
}

func failed(format string, args ...any) verdict {
	return verdict{text: fmt.Sprintf(format, args...)}
}

// judge runs the tests of an exercise on what the learner has written.
func (w *workspace) judge(e *exercise) (verdict, error) {
	written, err := os.ReadFile(w.path(e))
	if err != nil {
		return verdict{}, err
	}
	var v verdict
	switch e.kind() {
	case "predict":
		v, err = w.judgePrediction(e, written)
	case "prove":
		v, err = w.judgeProof(e)
	default:
		v, err = w.judgeRepair(e)
	}
	if broken, ok := errors.AsType[*compileError](err); ok {
		return failed("It does not compile:\n\n%s", broken.output), nil
	}
	if known := e.known(written); err == nil && !v.passed && known != "" {
		v.text += "\n\nThis looks like: " + known
	}
	return v, err
}

func (w *workspace) judgeRepair(e *exercise) (verdict, error) {
	binary, err := w.build(e, map[string]string{e.file(): w.path(e)}, "test")
	if err != nil {
		return verdict{}, err
	}
	if output, ok := w.run(e, binary, w.narrow(e)...); !ok {
		return failed("%s\n\n%s", e.values["user"], shortest(output)), nil
	}
	if output, ok := w.run(e, binary, "-test.short"); !ok {
		return failed("That bug is gone. But now something else is wrong:\n\n%s", shortest(output)), nil
	}
	return verdict{true, "All tests pass."}, nil
}

// narrow returns the flags that run the tests of an exercise: only what notices its bug.
func (w *workspace) narrow(e *exercise) []string {
	flags := []string{"-test.run", e.values["test"]}
	if e.explored() {
		flags = append(flags, "-explore.shard=1/1")
	}
	return flags
}

func (e *exercise) explored() bool { return strings.HasPrefix(e.values["test"], "TestExplore/") }

func (w *workspace) judgeProof(e *exercise) (verdict, error) {
	test := filepath.Join(e.folder(), "prove_test.go")
	binary, err := w.build(e, map[string]string{test: w.path(e)}, "test")
	if err != nil {
		return verdict{}, err
	}
	output, ok := w.run(e, binary, "-test.run", "^TestProve$")
	if !ok {
		return failed("Your test fails, although nothing is wrong with the controller:\n\n%s",
			shortest(output)), nil
	}
	if strings.Contains(output, "no tests to run") {
		return failed("There is no TestProve."), nil
	}
	mutant, err := e.put(w.root, e.to)
	if err == nil {
		err = os.WriteFile(w.beside(e, "mutant.go"), mutant, 0o600)
	}
	if err != nil {
		return verdict{}, err
	}
	files := map[string]string{test: w.path(e), e.file(): w.beside(e, "mutant.go")}
	if binary, err = w.build(e, files, "mutant.test"); err != nil {
		return verdict{}, err
	}
	if output, ok = w.run(e, binary, "-test.run", "^TestProve$"); ok {
		return failed("Your test does not notice it. %s", e.values["user"]), nil
	}
	return verdict{true, "Your test passes. With the bug, it fails:\n\n" + shortest(output) +
		"\n\n" + e.why}, nil
}

func (w *workspace) judgePrediction(e *exercise, written []byte) (verdict, error) {
	chosen, found := e.choice[strings.TrimSpace(string(written))]
	if !found {
		return failed("Answer with one of these letters: %s", strings.Join(e.letters(), ", ")), nil
	}
	seen, err := w.played(e)
	if err != nil {
		return verdict{}, err
	}
	right := regexp.MustCompile(chosen.sees).MatchString(seen)
	text := "No. This is what happened:"
	if right {
		text = "Yes. This is what happened:"
	}
	text += "\n\n" + strings.TrimSuffix(seen, "\n")
	if right {
		text += "\n\n" + e.why
	}
	return verdict{right, text}, nil
}

// played plays what the question is about, and returns what was printed.
func (w *workspace) played(e *exercise) (seen string, err error) {
	play := w.beside(e, "play_test.go")
	text := strings.Replace(playFile, "BODY", e.play, 1)
	if err := os.WriteFile(play, []byte(text), 0o600); err != nil {
		return "", err
	}
	files := map[string]string{filepath.Join(e.folder(), "play_test.go"): play}
	binary, err := w.build(e, files, "test")
	if err != nil {
		return "", err
	}
	output, ok := w.run(e, binary, "-test.run", "^TestPlay$")
	if !ok {
		return "", fmt.Errorf("the play of %s failed:\n%s", e.name, output)
	}
	for line := range strings.Lines(output) {
		if text, found := strings.CutPrefix(line, "| "); found {
			seen += "  " + text
		}
	}
	return seen, nil
}

// compileError says that what the learner has written does not compile.
type compileError struct{ output string }

func (e *compileError) Error() string { return e.output }

// build compiles the tests of an exercise, with other files in place of some of the repository's.
// Most of the time goes into the package and the linker: they do without what nobody needs here.
func (w *workspace) build(e *exercise, files map[string]string, name string) (string, error) {
	replace, key := map[string]string{}, e.kind()+"\n"+e.folder()
	if e.kind() != "repair" { // its test needs only the harness
		tests, _ := filepath.Glob(filepath.Join(w.root, e.folder(), "*_test.go"))
		for _, test := range tests {
			if !strings.HasSuffix(test, "harness_test.go") {
				replace[test] = ""
			}
		}
	}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		text, err := os.ReadFile(files[file])
		if err != nil {
			return "", err
		}
		if finished, _ := os.ReadFile(filepath.Join(w.root, file)); !bytes.Equal(text, finished) {
			replace[filepath.Join(w.root, file)] = files[file]
			key += "\n" + file + "\n" + string(text)
		}
	}
	if binary, found := w.built.Load(key); found {
		return binary.(string), nil
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err == nil {
		err = os.WriteFile(w.beside(e, "overlay.json"), overlay, 0o600)
	}
	if err != nil {
		return "", err
	}
	binary := w.beside(e, name)
	w.built.Range(func(key, built any) bool {
		if built == binary {
			w.built.Delete(key)
		}
		return true
	})
	command := exec.Command("go", "test", "-c", "-vet=off", "-ldflags=-s -w",
		"-gcflags=-N -l -dwarf=false", "-overlay", w.beside(e, "overlay.json"), "-o", binary, ".")
	command.Dir = filepath.Join(w.root, e.folder())
	command.Env = append(os.Environ(), "GOGC=400") // of the compiler and the linker
	output, err := command.CombinedOutput()
	if err != nil {
		text := string(output)
		for _, file := range slices.Collect(maps.Keys(files)) {
			text = strings.ReplaceAll(text, "./"+filepath.Base(file)+":", files[file]+":")
		}
		return "", &compileError{text}
	}
	w.built.Store(key, binary)
	return binary, nil
}

// run runs compiled tests in their folder, and reports whether they passed.
func (w *workspace) run(e *exercise, binary string, flags ...string) (string, bool) {
	command := exec.Command(binary, append(flags, "-test.timeout=5m")...)
	command.Dir = filepath.Join(w.root, e.folder())
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	if strings.Contains(stderr.String()+stdout.String(), "panic: test timed out") {
		return "The controller never comes to rest: it works on and on, and no time passes.", false
	}
	return stdout.String() + panicked.FindString(stderr.String()), err == nil
}

var (
	verdictLine = regexp.MustCompile(`(?m)^ *--- FAIL: .*$`)
	position    = regexp.MustCompile(`(?m)^ *[\w]+\.go:\d+: *`)
	panicked    = regexp.MustCompile(`(?m)^panic: .*$`)
	alone       = regexp.MustCompile(`(?s)\n *To run this case alone:.*`)
)

// long is what a line may be long at most: some tests print whole objects.
const long = 160

// shortest returns the shortest of the failures that tests have printed: of all histories, it is
// the one with the fewest steps.
func shortest(output string) string {
	var found []string
	output = strings.TrimSuffix(output, "FAIL\n")
	for _, text := range verdictLine.Split(output, -1)[1:] {
		if at := strings.Index(text, "\n--- "); at >= 0 {
			text = text[:at]
		}
		text = alone.ReplaceAllString(position.ReplaceAllString(text, ""), "")
		if text = unindent(strings.Trim(text, "\n")); text != "" {
			found = append(found, text)
		}
	}
	if len(found) == 0 {
		return output
	}
	return slices.MinFunc(found, func(a, b string) int {
		return strings.Count(a, "\n") - strings.Count(b, "\n")
	})
}

// unindent removes the indentation that all lines share.
func unindent(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n "), "\n")
	indent := len(text)
	for _, line := range lines {
		if trimmed := strings.TrimLeft(line, " \t"); trimmed != "" {
			indent = min(indent, len(line)-len(trimmed))
		}
	}
	for i, line := range lines {
		if line = line[min(indent, len(line)):]; len(line) > long {
			line = line[:long] + "..."
		}
		lines[i] = line
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}
