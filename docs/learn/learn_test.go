package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"example.com/sample-controller/docs/internal/anchors"
	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/setting"
)

// newWorkspace returns a workspace of the test's own, and what it says.
func newWorkspace(t *testing.T) (*workspace, *bytes.Buffer) {
	t.Helper()
	root := must.Get(filepath.Abs("../.."))(t)
	w := must.Get(open(root, t.TempDir()))(t)
	out := &bytes.Buffer{}
	w.out, w.patience = out, 9*time.Minute // other tests may run beside
	return w, out
}

// TestExercises checks what can be checked at once, and, if long tests run, that each exercise, as it is in
// the beginning, fails for the right reason, that its solution passes, and that mistakes fail.
func TestExercises(t *testing.T) {
	t.Parallel()
	w, _ := newWorkspace(t)
	w.out = os.Stderr // of several exercises at a time
	for _, e := range w.exercises {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			must.Do(t, w.begin(e))
			checkHints(t, w, e)
			for _, m := range append(e.mistakes(), mistake{text: e.solves}) {
				written := must.Get(e.write(w.root, m.text))(t)
				if got := e.known(string(written)); got != m.name {
					t.Errorf("%s\nis known as %q, want %q", m.text, got, m.name)
				}
				unless := e.values["unless"]
				if got := e.known(string(written) + unless); unless != "" && got != "" {
					t.Errorf("with %s, it is known as %q", unless, got)
				}
			}
			if len(e.mistakes()) == 0 || !strings.HasPrefix(e.values["issue"], "https://github.com/") {
				t.Error("it has no mistake, or no issue")
			}
			if setting.All() {
				playExercise(t, w, e)
			}
		})
	}
}

// answers returns what an exercise begins with, the mistakes, and the solution.
func (e *exercise) answers() []string {
	all := []string{e.begins}
	for _, m := range e.mistakes() {
		all = append(all, m.text)
	}
	return append(all, e.solves)
}

// together compiles all exercises of a folder, with each answer as a variant of its own: proofs, or all
// others, because the tests of both have the same names.
func together(t *testing.T, w *workspace, proofs bool, folder string) string {
	t.Helper()
	variants, files := map[string]map[string]string{}, map[string]string{}
	var like *exercise
	for _, e := range w.exercises {
		if (e.kind() == "prove") != proofs || e.folder() != folder {
			continue
		}
		if like == nil || e.kind() == "repair" { // which needs all tests of the folder
			like = e
		}
		for i, answer := range e.answers() {
			written := must.Get(e.write(w.root, answer))(t)
			for file, text := range must.Get(w.files(e, string(written)))(t) {
				if variants[file] == nil {
					variants[file] = map[string]string{}
				}
				variants[file][fmt.Sprint(e.id(), i)] = text
				files[file] = text
			}
		}
	}
	for file, text := range files {
		if finished, err := os.ReadFile(filepath.Join(w.root, file)); err == nil {
			text = string(finished)
		}
		files[file] = must.Get(merge(text, variants[file]))(t)
	}
	return must.Get(w.compile(like, files))(t)
}

// finished has the binaries of which all tests were run without a bug: what solves a repair is the
// finished program, and the same for each.
var finished sync.Map

// playExercise judges an exercise as it is in the beginning, with mistakes, and solved.
func playExercise(t *testing.T, w *workspace, e *exercise) {
	t.Helper()
	binary, answers := together(t, w, e.kind() == "prove", e.folder()), e.answers()
	for i, answer := range answers {
		written := must.Get(e.write(w.root, answer))(t)
		tried := trial{binary, []string{fmt.Sprint(e.id(), i)}}
		solved, want := i == len(answers)-1, e.values["says"]
		if solved && e.kind() == "repair" {
			if _, again := finished.LoadOrStore(binary, true); again {
				if output, ok := w.run(e, tried, w.narrow(e)...); !ok {
					t.Errorf("the solution fails:\n%s", output)
				}
				return
			}
		}
		v := must.Get(w.verdict(e, string(written), tried))(t)
		if solved {
			want = e.why()
		} else if i > 0 {
			want = e.mistakes()[i-1].name
		}
		t.Logf("%s\n%s", answer, v.text)
		if v.passed != solved || !strings.Contains(v.text, want) {
			t.Errorf("want %t, and a text with %q; got %t, and the above", solved, want, v.passed)
		}
	}
}

var named = regexp.MustCompile("`([^`]+)`")

// checkHints checks that each hint names something in the code, or a file.
func checkHints(t *testing.T, w *workspace, e *exercise) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(w.root, e.folder(), "*.go"))
	var code strings.Builder
	for _, file := range files {
		text, _ := os.ReadFile(file)
		code.Write(text)
	}
	for _, hint := range e.hints {
		names := named.FindAllStringSubmatch(hint, -1)
		if len(names) == 0 {
			t.Errorf("this hint names nothing: %s", hint)
		}
		for _, name := range names {
			_, err := os.Stat(filepath.Join(w.root, name[1]))
			if err != nil && !strings.Contains(code.String(), name[1]) {
				t.Errorf("there is no %s", name[1])
			}
		}
	}
}

var (
	checkRow     = regexp.MustCompile(`(?m)^\| ([^|]*) \| \[[^|]*\) \|`)
	catalogueRow = regexp.MustCompile(`(?m)^\| ([^|]*) \| .* \| ([a-z-]+) \|$`)
)

// named returns the exercise of that name, or nil.
func (w *workspace) named(name string) *exercise {
	for _, e := range w.exercises {
		if e.name == name {
			return e
		}
	}
	return nil
}

func TestChaptersLeadToExercises(t *testing.T) {
	w, _ := newWorkspace(t)
	pages := must.Get(filepath.Glob(filepath.Join(w.root, "docs/tutorial/*.md")))(t)
	leads := regexp.MustCompile("`([a-z-]+)` in \\[`make learn`\\]\\(../learn.md\\)")
	found := 0
	for _, page := range pages {
		for _, name := range leads.FindAllStringSubmatch(string(must.Get(os.ReadFile(page))(t)), -1) {
			found++
			e := w.named(name[1])
			if e == nil || !strings.HasPrefix(e.values["read"], "docs/tutorial/"+filepath.Base(page)) {
				t.Errorf("%s leads to %s, want an exercise that leads back", page, name[1])
			}
		}
	}
	if found < 11 {
		t.Errorf("got %d chapters that lead to an exercise, want all from 4 to 14", found)
	}
}

// TestChecklistIsCovered checks that each line of the checklist for reviews has an exercise, and each
// bug in docs/explore.md, and that the places to read exist.
func TestChecklistIsCovered(t *testing.T) {
	w, _ := newWorkspace(t)
	page := func(path string) string {
		text := must.Get(os.ReadFile(filepath.Join(w.root, path)))(t)
		return string(text)
	}
	covered := map[string]bool{}
	for _, e := range w.exercises {
		covered[e.values["check"]] = true
		path, anchor, _ := strings.Cut(e.values["read"], "#")
		if !anchors.Has(page(path), anchor) {
			t.Errorf("%s: there is no %s", e.name, e.values["read"])
		}
	}
	_, checklist, _ := strings.Cut(page("docs/review.md"), "## A checklist for reviews")
	checklist, _, _ = strings.Cut(checklist, "\n## ")
	rows := checkRow.FindAllStringSubmatch(checklist, -1)
	for _, row := range rows {
		if !covered[row[1]] {
			t.Errorf("no exercise is for this line: %s", row[1])
		}
	}
	if len(rows) < 15 {
		t.Errorf("got %d lines of the checklist, want all", len(rows))
	}
	_, catalogue, _ := strings.Cut(page("docs/explore.md"), "### The usual bugs")
	catalogue, _, _ = strings.Cut(catalogue, "\n### ")
	rows = catalogueRow.FindAllStringSubmatch(catalogue, -1)
	for _, row := range rows {
		if w.named(row[2]) == nil {
			t.Errorf("%s: there is no exercise %q", row[1], row[2])
		}
	}
	if len(rows) < 16 || len(rows) != strings.Count(catalogue, "\n| ")-1 {
		t.Errorf("got %d bugs of docs/explore.md, want all", len(rows))
	}
}

// standIn lets this test stand in for the compiled test of a question.
func standIn(t *testing.T, w *workspace, e *exercise) {
	t.Helper()
	folder := filepath.Join(w.dir, "compiled", e.kind(), e.folder())
	must.Do(t, os.MkdirAll(folder, 0o750))
	must.Do(t, os.Symlink(must.Get(os.Executable())(t), filepath.Join(folder, "test")))
	w.compiled[filepath.Join(folder, "test")] = must.Get(w.files(e, ""))(t)
}

func TestProgressIsRemembered(t *testing.T) {
	w, out := newWorkspace(t)
	e := w.exercises[0]
	standIn(t, w, e)
	check := func(e *exercise) error { return w.check(e, time.Time{}) }
	for i, step := range []struct {
		do   func(*exercise) error
		want string
	}{
		{w.show, e.choice["a"].text},
		{w.hint, "Hint 1 of 2"},
		{w.hint, "Hint 2 of 2"},
		{w.solution, "So far: 0"},
		{func(e *exercise) error { return os.WriteFile(w.path(e), []byte("z"), 0o600) }, ""},
		{check, "Answer with one of these letters: a, b, c"},
		{check, "Answer"},
		{check, "Answer"},
		{w.solution, e.why()},
	} {
		out.Reset()
		must.Do(t, w.begin(e))
		must.Do(t, step.do(e))
		if !strings.Contains(out.String(), step.want) {
			t.Errorf("step %d: got %s, want %q in it", i, out, step.want)
		}
	}
	again := must.Get(open(w.root, w.dir))(t)
	if got := *again.progress[e.name]; got != (progress{Tries: 3, Hints: 2}) {
		t.Errorf("progress: got %+v, want three tries and two hints", got)
	}
}

func TestKeys(t *testing.T) {
	w, out := newWorkspace(t)
	w.progress[w.exercises[0].name].Passed = true
	last := w.exercises[len(w.exercises)-1]
	w.exercises = []*exercise{w.exercises[0], last}
	must.Do(t, w.loop(strings.NewReader("l\nH)\n2\nn\n3\np\np\nq\n")))
	if got := strings.Count(out.String(), last.text); got != 4 {
		t.Errorf("got the exercise %d times, want it again after 2, n and 3", got)
	}
	for _, want := range []string{last.text, "passed", last.hints[0], "Of 2, 1 are left.",
		w.exercises[0].text} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got %s, want %q in it", out, want)
		}
	}
}

func TestEndSaysWhatTheLearnerCanDo(t *testing.T) {
	w, out := newWorkspace(t)
	for _, name := range []string{"catch-up", "lost-deletion", "silent-queue", "lost-lease"} {
		w.progress[name].Passed = true
	}
	quit := func() string {
		out.Reset()
		must.Do(t, w.loop(strings.NewReader("q\n")))
		return out.String()
	}
	want := `In a review of any controller, you can now check this:
- handlers only compute keys; a sync reads the state, and not what happened
- Each Get of a queue needs its Done, on every path: so it is deferred.
- a process that has lost the Lease exits
`
	if got := quit(); !strings.HasSuffix(got, want) {
		t.Errorf("got %s, want in the end %s", got, want)
	}
	w.exercises = []*exercise{w.named("lost-lease")}
	if got := quit(); !strings.Contains(got, "docs/forking.md") {
		t.Errorf("got %s, want what comes after the last exercise", got)
	}
}

// judgements counts, of all that is said, what a judge says.
type judgements struct{ atomic.Int64 }

func (j *judgements) Write(said []byte) (int, error) {
	j.Add(int64(bytes.Count(said, []byte("Answer with one of these letters"))))
	return len(said), nil
}

// A learner who has changed nothing is not judged.
func TestOnlyWhatIsSavedIsJudged(t *testing.T) {
	w, _ := newWorkspace(t)
	var judge judgements
	w.out = &judge
	e := w.exercises[0]
	e.begins = "z" // no letter of an answer
	standIn(t, w, e)
	must.Do(t, w.loop(strings.NewReader("q\n"))) // what waits for signals begins outside of the bubble
	synctest.Test(t, func(t *testing.T) {
		keys, learner := io.Pipe()
		go func() { _ = w.loop(keys) }()
		judged := func() int64 {
			time.Sleep(time.Minute)
			synctest.Wait()
			return judge.Load()
		}
		got := []int64{judged()}
		must.Do(t, os.WriteFile(w.path(e), []byte("z"), 0o600))
		for _, key := range []string{"h", "n", "p", "r"} {
			got = append(got, judged())
			fmt.Fprintln(learner, key)
		}
		if got = append(got, judged()); !slices.Equal(got, []int64{0, 1, 1, 1, 1, 1}) {
			t.Errorf("before the save, after it, and after h, n, p and r: judged %v times, want once", got)
		}
		e.begins = "after a git pull"
		must.Do(t, w.begin(e))
		if got := must.Get(os.ReadFile(w.path(e)))(t); string(got) != e.begins {
			t.Errorf("got %s in a file that was not saved, want %s", got, e.begins)
		}
		must.Do(t, learner.Close())
	})
}

// TestPlay is no test, except as a child of the one below: the first hangs.
func TestPlay(*testing.T) {
	if first := os.Getenv("LEARN-first"); first != "" {
		mine := fmt.Sprint(first, os.Getpid())
		_ = os.WriteFile(mine, fmt.Append(nil, os.Getpid()), 0o600)
		for os.Link(mine, first) == nil {
			time.Sleep(time.Hour)
		}
		fmt.Println("| done: the second one" + os.Getenv("HACK_TESTS"))
	}
}

func TestSaveCancelsTheJudgement(t *testing.T) {
	w, _ := newWorkspace(t)
	e := w.exercises[0]
	e.choice = map[string]option{"a": {sees: "never"}, "b": {sees: "the second one\n"}}
	standIn(t, w, e)
	first := filepath.Join(w.dir, "first")
	t.Setenv("LEARN-first", first)
	t.Setenv("HACK_TESTS", "all") // which the judged tests do not see

	must.Do(t, w.begin(e))
	save := func(answer string) { must.Do(t, os.WriteFile(w.path(e), []byte(answer), 0o600)) }
	save("a")
	keys, learner := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- w.loop(keys) }()
	wait := func(path string) {
		for !exists(path) {
			select {
			case err := <-ended:
				t.Fatalf("it ended without %s: %v", path, err)
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	wait(first) // the first judgement hangs
	save("b")
	wait(w.saved())             // one has ended
	must.Do(t, learner.Close()) // as q
	must.Do(t, <-ended)
	if !w.progress[e.name].Passed {
		t.Error("the newer answer was not judged")
	}
	pid := must.Get(strconv.Atoi(string(must.Get(os.ReadFile(first))(t))))(t)
	if syscall.Kill(pid, 0) == nil {
		t.Error("the judgement of the older answer goes on")
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// TestLearnerIsJudged goes the way of a learner, who writes a file and has it judged.
func TestLearnerIsJudged(t *testing.T) {
	setting.Long(t)
	t.Parallel()
	w, _ := newWorkspace(t)
	for _, name := range []string{"crash", "conflict", "finalizer", "refused"} {
		e := w.named(name)
		must.Do(t, w.begin(e))
		judge := func(answer, more string, passes bool, want string) {
			text := append(must.Get(e.write(w.root, answer))(t), more...)
			must.Do(t, os.WriteFile(w.path(e), text, 0o600))
			begin := time.Now()
			v := must.Get(w.judge(e))(t)
			t.Logf("%s: %.1f s", name, time.Since(begin).Seconds())
			if v.passed != passes || !strings.Contains(v.text, want) {
				t.Errorf("%s: want %t, and %q in the text; got %t and %s", name, passes, want, v.passed, v.text)
			}
		}
		if name == "conflict" {
			judge(e.begins, "", false, e.values["user"])
		}
		if name != "finalizer" { // which is of another module, and takes long
			judge(e.solves, "", true, e.why())
		}
		if e.kind() != "predict" {
			judge(e.solves, "]", false, w.path(e)+":")
		}
	}
}

func TestUnusedImportIsNoticed(t *testing.T) {
	if _, err := merge("package a\n\nimport \"os\"\n\nfunc f() {}\n", nil); err == nil {
		t.Error("got no error, want one")
	}
}

// TestNeverEnds is no test, except as a child of the one below.
func TestNeverEnds(*testing.T) {
	for os.Getenv("LEARN-hang") != "" {
		time.Sleep(time.Hour)
	}
}

func TestWhatNeverEndsIsSaid(t *testing.T) {
	w, out := newWorkspace(t)
	w.patience = 2 * time.Second
	child := trial{os.Args[0], []string{"LEARN-hang"}}
	got, ok := w.run(w.exercises[0], child, "-test.run", "^TestNeverEnds$")
	if ok || !strings.Contains(got, "After 2s,") || !strings.Contains(out.String(), "still running") {
		t.Errorf("got %t, %s and %s, want a word, and then an end", ok, got, out)
	}
}

// init hangs or exits, as what a learner writes may, in children of the test below.
func init() {
	if os.Getenv("LEARN-exit") != "" {
		os.Exit(0)
	}
	if os.Getenv("LEARN-fatal") != "" {
		new(sync.Mutex).Unlock()
	}
	for os.Getenv("LEARN-init") != "" {
		time.Sleep(time.Hour)
	}
}

func TestWhatRunsNoTestsDoesNotPass(t *testing.T) {
	w, _ := newWorkspace(t)
	for _, test := range []struct {
		variant  string
		patience time.Duration
		want     string
	}{
		{"LEARN-init", time.Second, "After 1s,"},
		{"LEARN-exit", time.Hour, "before their time: exit status 0"},
		{"LEARN-fatal", time.Hour, "fatal error: sync: unlock of unlocked mutex"},
	} {
		w.patience = test.patience
		child := trial{os.Args[0], []string{test.variant}}
		got, ok := w.run(w.exercises[0], child, "-test.run", "^TestKeys$")
		if ok || !strings.Contains(got, test.want) {
			t.Errorf("%s: passed is %t, and it says %.100s", test.variant, ok, got)
		}
	}
	judging, quit := context.WithCancel(t.Context())
	w.judging, w.patience = judging, time.Hour
	time.AfterFunc(100*time.Millisecond, quit) // the learner presses q
	w.run(w.exercises[0], trial{os.Args[0], []string{"LEARN-init"}})
}

func TestShortestFailure(t *testing.T) {
	got := shortest("--- FAIL: TestA (0.1s)\n    --- FAIL: TestA/x (0.1s)\n        a_test.go:7: \n" +
		"            one\n              two\n            To run this case alone:\n" +
		"              go test\n    --- FAIL: TestA/y (0.1s)\n        a_test.go:7: \n" +
		"            1\n            2\n            3\n    --- FAIL: TestA/z (0.1s)\n" +
		"    a_test.go:9: \n        In all, 3 cases failed.\n    --- FAIL: TestB (0.1s)\n" +
		"    b.go:9: 3 of 4 cases were explored in 1s\nFAIL\n")
	if want := "one\n  two"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
