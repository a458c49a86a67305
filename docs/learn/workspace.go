package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"example.com/sample-controller/internal/testing/setting"
)

// workspace is where a learner writes: a folder for each exercise, and what was achieved.
type workspace struct {
	root, dir string
	out       io.Writer
	exercises []*exercise
	progress  map[string]*progress // by the name of the exercise
	patience  time.Duration        // how long tests may take
	judging   context.Context      // done if nobody waits for the judgement any more
	warned    bool                 // that the first judgement takes longer

	ctx context.Context // done after Ctrl-C, which ends what is judged

	compiling sync.Mutex
	compiled  map[string]map[string]string // the files of a binary, by their names
}

// progress is how far a learner is with an exercise.
type progress struct {
	Passed bool
	Tries  int
	Hints  int
	Judged time.Time // when the file was saved that was judged last
}

// tries is after how many tries the solution may be seen.
const tries = 3

// untouched is the time of a file that the learner has not saved yet.
var untouched = time.Unix(0, 0)

// open opens the workspace in dir, for the repository in root.
func open(root, dir string) (*workspace, error) {
	exercises, err := readExercises(filepath.Join(root, "docs", "learn", "exercises"))
	if err != nil {
		return nil, err
	}
	w := &workspace{root: root, dir: dir, out: os.Stdout, exercises: exercises,
		progress: map[string]*progress{}, patience: setting.Patience() / 3,
		judging: context.Background(), ctx: context.Background(),
		compiled: map[string]map[string]string{}}
	saved, err := os.ReadFile(w.saved())
	if err == nil {
		err = json.Unmarshal(saved, &w.progress)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s says how far you are, and is broken: delete it to begin anew: %w",
			w.saved(), err)
	}
	for _, e := range exercises {
		if w.progress[e.name] == nil {
			w.progress[e.name] = &progress{}
		}
	}
	return w, os.MkdirAll(dir, 0o750)
}

func (w *workspace) saved() string { return filepath.Join(w.dir, "progress.json") }

// path returns the path of the learner's file.
func (w *workspace) path(e *exercise) string { return filepath.Join(w.dir, e.name, e.edits()) }

func (w *workspace) save() error {
	text, _ := json.MarshalIndent(w.progress, "", "  ") // never fails
	if err := os.WriteFile(w.saved()+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(w.saved()+".new", w.saved()) // the disk may have been full
}

func (w *workspace) say(format string, args ...any) { fmt.Fprintf(w.out, format+"\n", args...) }

// begin writes the file that the learner edits, unless the learner has saved it. One that was not
// saved may be that of an older repository. The program of a chapter that consists of that of the
// root and changes is put together.
func (w *workspace) begin(e *exercise) error {
	if chapter, found := strings.CutPrefix(e.folder(), "docs/.local/"); found {
		command := exec.Command(filepath.Join(w.root, "docs/tutorial/assemble"), chapter)
		if output, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("putting %s together: %w\n%s", e.folder(), err, output)
		}
	}
	if info, err := os.Stat(w.path(e)); err == nil && !info.ModTime().Equal(untouched) {
		return nil
	}
	return w.reset(e)
}

// reset writes the file that the learner edits as it is in the beginning.
func (w *workspace) reset(e *exercise) error {
	text, err := e.write(w.root, e.begins)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(w.path(e)), 0o750); err != nil {
		return err
	}
	if err := os.WriteFile(w.path(e)+".new", text, 0o600); err != nil {
		return err
	}
	if err := os.Chtimes(w.path(e)+".new", untouched, untouched); err != nil {
		return err
	}
	return os.Rename(w.path(e)+".new", w.path(e)) // it never has another time
}

// passed returns the exercises that the learner has solved.
func (w *workspace) passed() []*exercise {
	return slices.DeleteFunc(slices.Clone(w.exercises), func(e *exercise) bool {
		return !w.progress[e.name].Passed
	})
}

func (w *workspace) list() {
	for i, e := range w.exercises {
		state := ""
		if p := w.progress[e.name]; p.Passed {
			state = "passed"
		} else if p.Tries > 0 {
			state = fmt.Sprintf("%d tries", p.Tries)
		}
		w.say("%2d  %-8s %-26s %s", i+1, e.kind(), e.name, state)
	}
	w.say("Of %d, %d are left.", len(w.exercises), len(w.exercises)-len(w.passed()))
}

// end says what the learner can do now: for each exercise that is solved, a line of the checklist.
func (w *workspace) end() {
	passed, checks := w.passed(), ""
	w.say("\nYou have solved %d of %d exercises.", len(passed), len(w.exercises))
	for _, e := range passed {
		if check := "\n- " + cmp.Or(e.values["check"], e.why()); !strings.Contains(checks, check) {
			checks += check
		}
	}
	if checks != "" {
		w.say("In a review of any controller, you can now check this:%s", checks)
	}
	if len(passed) == len(w.exercises) {
		w.say("You can build a controller of your own now: docs/forking.md says how to begin.")
	}
}

func (w *workspace) show(e *exercise) error {
	w.say("\n%s, %d of %d: %s\n\n%s\n", e.kind(), slices.Index(w.exercises, e)+1, len(w.exercises),
		e.name, e.text)
	for _, letter := range e.letters() {
		w.say("  %s) %s", letter, e.choice[letter].text)
	}
	task := map[string]string{"predict": "Type the letter, and Enter.",
		"repair": "Repair " + w.path(e) + "\nSave it to have it judged. If you save it unchanged, you see what goes wrong.",
		"prove":  "Write the test into " + w.path(e) + "\nSave it to have it judged."}[e.kind()]
	w.say("\n%s\nRead: %s\nA real case: %s", task, e.values["read"], e.values["issue"])
	return nil
}

// check judges what the learner has saved at that time, and counts the tries.
func (w *workspace) check(e *exercise, saved time.Time) error {
	begin := time.Now()
	v, err := w.judge(e)
	if w.judging.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	w.say("\n%s\n\n(%.1f s)", v.text, time.Since(begin).Seconds())
	p := w.progress[e.name]
	p.Judged = saved
	if v.passed {
		p.Passed = true
		if len(w.passed()) == len(w.exercises) {
			w.end()
		} else {
			w.say("Solved. n goes on.")
		}
		return w.save()
	}
	p.Tries++
	return w.save()
}

func (w *workspace) hint(e *exercise) error {
	p := w.progress[e.name]
	if p.Hints < len(e.hints) {
		p.Hints++
	}
	for i, hint := range e.hints[:p.Hints] {
		w.say("Hint %d of %d:\n%s", i+1, len(e.hints), hint)
	}
	if p.Hints == len(e.hints) {
		w.say("These are all hints.")
	}
	return w.save()
}

func (w *workspace) solution(e *exercise) error {
	p := w.progress[e.name]
	switch {
	case !p.Passed && p.Tries < tries:
		w.say("The solution is for after %d tries. So far: %d.", tries, p.Tries)
	case e.kind() == "repair":
		w.say("In %s, the bug was:\n\n%s\n\nThe finished program has in its place:\n\n%s", e.file(),
			cmp.Or(e.to, "(these lines are missing)"), e.from)
	default:
		w.say("%s\n\n%s", e.solves, e.why())
	}
	return nil
}

// loop gives one exercise after the other, and judges each time that the file is saved. It ends
// when the learner quits.
func (w *workspace) loop(in io.Reader) error {
	at := max(0, slices.IndexFunc(w.exercises, func(e *exercise) bool {
		return !w.progress[e.name].Passed
	}))
	ctx, end := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer end()
	w.ctx, w.judging = ctx, ctx
	lines := make(chan string)
	go func() {
		defer close(lines)
		for scanner := bufio.NewScanner(in); scanner.Scan(); {
			lines <- strings.ToLower(strings.Trim(scanner.Text(), " \t)"))
		}
	}()
	for {
		e := w.exercises[at]
		var err error
		if at, err = w.work(e, at, lines); err != nil || at < 0 {
			return err
		}
	}
}

// moves returns where a key goes, if it goes to the next exercise, the one before, or a number.
func (w *workspace) moves(at int, key string) (to int, moves bool) {
	switch number, err := strconv.Atoi(key); {
	case key == "n":
		to = at + 1
	case key == "p":
		to = at - 1
	case err == nil:
		to = number - 1
	default:
		return at, false
	}
	if to < 0 || to >= len(w.exercises) {
		w.list()
		return at, true
	}
	return to, true
}

const keys = "\nh hint, n next, p back, 7 go to exercise 7, l list, s solution, r reset the file, " +
	"q quit (and Enter)"

// work lets the learner work on an exercise. It returns which one is next, or -1 if the learner
// quits.
func (w *workspace) work(e *exercise, at int, lines <-chan string) (next int, err error) {
	if err := w.begin(e); err != nil {
		return at, err
	}
	if err := w.show(e); err != nil {
		return at, err
	}
	w.say(keys)
	p := w.progress[e.name]
	judged := p.Judged
	var ended chan error // of the judgement, or nil
	cancel := func() {}
	stop := func() {
		if cancel(); ended != nil {
			<-ended                       //nolint:errcheck // it was canceled
			ended, judged = nil, p.Judged // it begins again
		}
		w.judging = w.ctx
	}
	defer func() { stop() }()
	ticker := time.NewTicker(300 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case err := <-ended:
			if ended = nil; err != nil {
				return at, err
			}
			w.say(keys)
		case key, more := <-lines:
			stop()
			if !more || key == "q" {
				w.end()
				return -1, nil
			}
			if to, moves := w.moves(at, key); moves {
				return to, nil
			}
			if err := w.press(e, key); err != nil {
				return at, err
			}
		case <-w.ctx.Done():
			stop()
			w.end()
			return -1, nil
		case <-ticker.C:
			info, err := os.Stat(w.path(e))
			if err != nil || info.Size() == 0 {
				continue // an editor may be writing it
			}
			saved := info.ModTime()
			if saved.Equal(judged) || saved.Equal(untouched) {
				continue
			}
			stop()
			judged = saved
			if !w.warned {
				w.say("\nThe first judgement compiles for up to a minute. Each later one takes seconds.")
			}
			w.warned = true
			w.say("\nJudging ...")
			judging, end := context.WithCancel(w.ctx)
			w.judging, cancel = judging, end
			ended = make(chan error, 1)
			go func() { ended <- w.check(e, saved) }()
		}
	}
}

// press does what a key asks for. A letter of a choice is the answer.
func (w *workspace) press(e *exercise, key string) error {
	if _, found := e.choice[key]; found {
		return os.WriteFile(w.path(e), []byte(key), 0o600)
	}
	do, found := map[string]func(*exercise) error{
		"h": w.hint, "s": w.solution,
		"l": func(*exercise) error { w.list(); return nil },
		"r": func(e *exercise) error {
			err := w.reset(e)
			if err == nil {
				w.say("The file is as it was in the beginning.")
			}
			return err
		},
	}[key]
	if !found {
		w.say("There is no key %q.", key)
		return nil
	}
	defer w.say(keys)
	return do(e)
}
