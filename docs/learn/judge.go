package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// verdict is what the judge says of an exercise.
type verdict struct {
	passed bool
	text   string
}

func failed(format string, args ...any) verdict {
	return verdict{text: fmt.Sprintf(format, args...)}
}

// trial is a compiled program, and which variants of it are on trial: see merge.
type trial struct {
	binary   string
	variants []string
}

// judge runs the tests of an exercise on what the learner has written.
func (w *workspace) judge(e *exercise) (verdict, error) {
	written, err := os.ReadFile(w.path(e))
	if err != nil {
		return verdict{}, err
	}
	binary, err := w.build(e, string(written))
	if broken, ok := errors.AsType[*compileError](err); ok {
		return failed("%s", broken), nil
	}
	if err != nil {
		return verdict{}, err
	}
	return w.verdict(e, string(written), trial{binary: binary})
}

// verdict runs the tests of an exercise on what is on trial.
func (w *workspace) verdict(e *exercise, written string, t trial) (v verdict, err error) {
	switch e.kind() {
	case "predict":
		v, err = w.judgePrediction(e, written, t)
	case "prove":
		v = w.judgeProof(e, t)
	default:
		v = w.judgeRepair(e, t)
	}
	if v.passed {
		v.text += "\n\n" + e.why()
	} else if known := e.known(written); known != "" {
		v.text += "\n\nThis looks like:\n" + known
	}
	return v, err
}

func (w *workspace) judgeRepair(e *exercise, t trial) verdict {
	if output, ok := w.run(e, t, w.narrow(e)...); !ok {
		what := e.values["user"]
		if !strings.Contains(output, e.values["says"]) {
			what = "What was wrong is gone or has changed. But the test still fails:"
		}
		return failed("%s\n\n%s", what, shortest(output))
	}
	if output, ok := w.run(e, t, "-test.short"); !ok {
		return failed("That bug is gone. But now something else is wrong:\n\n%s", shortest(output))
	}
	return verdict{true, "All tests pass."}
}

// narrow returns the flags that run the tests of an exercise: only what notices its bug.
func (w *workspace) narrow(e *exercise) []string {
	flags := []string{"-test.run", e.values["test"]}
	if e.explored() {
		flags = append(flags, "-explore.budget=0")
	}
	return flags
}

func (e *exercise) explored() bool { return strings.HasPrefix(e.values["test"], "TestExplore/") }

func (w *workspace) judgeProof(e *exercise, t trial) verdict {
	output, ok := w.run(e, t, "-test.run", "^TestProve$")
	if !ok {
		return failed("Your test fails, although nothing is wrong with the controller:\n\n%s",
			shortest(output))
	}
	if strings.Contains(output, "no tests to run") {
		return failed("There is no TestProve.")
	}
	t.variants = append(slices.Clone(t.variants), e.id())
	if output, ok = w.run(e, t, "-test.run", "^TestProve$"); ok {
		return failed("Your test does not notice it.\n\n%s", e.values["user"])
	}
	return verdict{true, "Your test passes. With the bug, it fails:\n\n" + shortest(output)}
}

func (w *workspace) judgePrediction(e *exercise, written string, t trial) (verdict, error) {
	chosen, found := e.choice[strings.TrimSpace(written)]
	if !found {
		return failed("Answer with one of these letters: %s", strings.Join(e.letters(), ", ")), nil
	}
	output, ok := w.run(e, t, "-test.run", "^TestPlay$")
	if !ok {
		return verdict{}, fmt.Errorf("the play of %s failed:\n%s", e.name, output)
	}
	var seen string
	for line := range strings.Lines(output) {
		if text, found := strings.CutPrefix(line, "| "); found {
			seen += "  " + text
		}
	}
	right := regexp.MustCompile(chosen.sees).MatchString(seen)
	text := "No: try another letter. This is what happened:"
	if right {
		text = "Yes. This is what happened:"
	}
	return verdict{right, text + "\n\n" + strings.TrimSuffix(seen, "\n")}, nil
}

// files returns what is compiled in place of files of the repository: what the learner has
// written, with the bug that a proof must notice as a variant, or what a question is about.
func (w *workspace) files(e *exercise, written string) (map[string]string, error) {
	test := path.Join(e.folder(), e.kind()+"_test.go")
	switch e.kind() {
	case "predict":
		play := strings.Replace(playFile, "BODY", e.play, 1)
		return map[string]string{test: play}, nil
	case "prove":
		finished, err := os.ReadFile(filepath.Join(w.root, e.file()))
		if err != nil {
			return nil, err
		}
		bug, err := e.put(w.root, e.to)
		if err != nil {
			return nil, err
		}
		both, err := merge(string(finished), map[string]string{e.id(): string(bug)})
		return map[string]string{e.file(): both, test: written}, err
	default:
		return map[string]string{e.file(): written}, nil
	}
}

// compileError says that what the learner has written does not compile.
type compileError struct{ output string }

func (e *compileError) Error() string { return "It does not compile:\n\n" + e.output }

// build compiles the tests of an exercise with what the learner has written.
func (w *workspace) build(e *exercise, written string) (string, error) {
	files, err := w.files(e, written)
	if err != nil {
		return "", err
	}
	return w.compile(e, files)
}

// compile compiles the tests of an exercise, with other files in place of some of the repository's.
// Most of the time goes into the package and the linker: they do without what nobody needs here.
func (w *workspace) compile(e *exercise, files map[string]string) (string, error) {
	w.compiling.Lock()
	defer w.compiling.Unlock()
	folder := filepath.Join(w.dir, "compiled", e.kind(), e.folder())
	binary, overlay := filepath.Join(folder, "test"), filepath.Join(folder, "overlay.json")
	if maps.Equal(w.compiled[binary], files) {
		return binary, nil
	}
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return "", err
	}
	replace := map[string]string{}
	if e.kind() != "repair" { // its test needs only the harness
		tests, _ := filepath.Glob(filepath.Join(w.root, e.folder(), "*_test.go"))
		for _, test := range tests {
			if !strings.HasSuffix(test, "harness_test.go") {
				replace[test] = ""
			}
		}
	}
	for file, text := range files {
		to := filepath.Join(folder, path.Base(file))
		replace[filepath.Join(w.root, file)] = to
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	text, _ := json.Marshal(map[string]any{"Replace": replace}) // never fails
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		return "", err
	}
	delete(w.compiled, binary)
	tmp := filepath.Join(w.dir, "tmp") // what was canceled leaves files there
	if err := cmp.Or(os.RemoveAll(tmp), os.MkdirAll(tmp, 0o750)); err != nil {
		return "", err
	}
	command := inGroup(w.judging, filepath.Join(w.root, "hack/env"), "env", "GOTMPDIR="+tmp,
		"go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-gcflags=-N -l -dwarf=false", "-overlay", overlay, "-o", binary, ".")
	command.Dir = filepath.Join(w.root, e.folder())
	command.Env = append(os.Environ(), "GOGC=400") // of the compiler and the linker
	if output, err := command.CombinedOutput(); err != nil {
		if !inFile.Match(output) {
			return "", fmt.Errorf("compiling: %w\n%s", err, output)
		}
		edited := regexp.MustCompile(`(?m)^\S*\b` + regexp.QuoteMeta(e.edits()) + ":")
		return "", &compileError{edited.ReplaceAllLiteralString(string(output), w.path(e)+":")}
	}
	w.compiled[binary] = files
	return binary, nil
}

// inFile is where a file is wrong. If it is of another package than the others, there is no line.
var inFile = regexp.MustCompile(`\.go(:\d|\))`)

// inGroup returns a command that is ended with all of its children.
func inGroup(ctx context.Context, name string, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, name, args...)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.WaitDelay = time.Second // for processes that have left the group
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	return command
}

// run runs compiled tests in their folder, and reports whether they passed.
func (w *workspace) run(e *exercise, t trial, flags ...string) (string, bool) {
	// The tests may hang before they look at the time, such as in init.
	ctx, cancel := context.WithTimeout(w.judging, 2*w.patience)
	defer cancel()
	command := inGroup(ctx, t.binary, append(flags, "-test.timeout="+w.patience.String())...)
	command.Dir = filepath.Join(w.root, e.folder())
	// With GOGC, it is a fifth less work. HACK_TESTS would make the tests long.
	command.Env = append(os.Environ(), "GOGC=400", "HACK_TESTS=")
	for _, variant := range t.variants {
		command.Env = append(command.Env, variant+"=1")
	}
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	ended := make(chan error, 1)
	go func() { ended <- command.Run() }()
	var err error
	select {
	case err = <-ended:
	case <-time.After(w.patience / 4):
		w.say("The tests are still running. Perhaps the controller never comes to rest.")
		err = <-ended
	}
	printed, problems := stdout.String(), stderr.String()
	output := problems + printed
	if strings.Contains(output, "panic: test timed out") || ctx.Err() != nil {
		return fmt.Sprintf("After %s, the tests have not ended: perhaps the controller never comes "+
			"to rest, works on and on, and no time passes.", w.patience), false
	}
	// A program that ends by itself, with 0, has not run all of its tests.
	passed := err == nil && strings.HasSuffix(strings.TrimSpace(printed), "PASS")
	said := printed + panicked.FindString(problems)
	if !passed && strings.TrimSpace(said) == "" {
		err = cmp.Or(err, errors.New("exit status 0"))
		said = fmt.Sprintf("The tests ended before their time: %v", err)
	}
	return said, passed
}

var (
	verdictLine = regexp.MustCompile(`(?m)^ *--- FAIL: .*$`)
	position    = regexp.MustCompile(`(?m)^ *[\w]+\.go:\d+: *`)
	panicked    = regexp.MustCompile(`(?m)^(panic|fatal error): .*$`)
	alone       = regexp.MustCompile(`(?s)\n *(To run this case alone:|In all, |\d+ of \d+ cases were explored ).*`)
)

// long is how long a line may be: some tests print whole objects.
const long = 100

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
