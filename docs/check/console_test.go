package check

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/setting"
)

var (
	console = flag.Bool("console", false, "execute the console blocks of all pages, or of those "+
		"that -page matches, on a control plane of their own")
	pageFilter = flag.String("page", "", "with -console, execute only the pages whose path matches "+
		"this regular `expression`")
)

// execute makes the edits and executes the consoles of a page. It stops at the first problem, but
// with -update it goes on after a wrong output. It returns the problems, and the bodies that the
// consoles should have.
func (s *session) execute(p *page) (problems []string, bodies map[*block][]string) {
	bodies = map[*block][]string{}
	for _, b := range p.blocks {
		if b.directive == "edit" {
			file, text, wrong := checkEdit(p, b, s.folder)
			if wrong != nil {
				return append(problems, wrong...), bodies
			}
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				return append(problems, p.at(b, "%v", err)), bodies
			}
		}
		if b.language != "console" {
			continue
		}
		should, found := s.console(p, b)
		problems = append(problems, found...)
		if should != nil {
			bodies[b] = should
		}
		if len(found) > 0 && should == nil {
			return problems, bodies
		}
	}
	return append(problems, s.unread(p)...), bodies
}

// console executes a console block. With -update, it returns the body that the block should have if
// the output has changed.
func (s *session) console(p *page, b *block) (should []string, problems []string) {
	all := steps(b.body)
	for i := range all {
		shown, output, err := s.step(b, all[i])
		if err == nil && matches(shown, output) {
			continue
		}
		problems = append(problems, explain(p, b, all[i], shown, output, err))
		if !*update || err != nil && !errors.Is(err, errPatience) {
			return nil, problems
		}
		fresh := refresh(shown, output)
		if len(shown) > len(all[i].output) && len(fresh) > 0 && fresh[0] == "..." {
			fresh = fresh[1:] // this "..." belongs to the step before
		}
		all[i].output = fresh
	}
	if len(problems) > 0 {
		should = body(all)
	}
	return should, problems
}

// step executes one step. It returns the output that the page shows, and the real output.
func (s *session) step(b *block, next step) (shown, output []string, err error) {
	name := b.terminal()
	if s.terminals[name] == nil {
		started, err := newTerminal(s.folder, s.env)
		if err != nil {
			return nil, nil, err
		}
		s.terminals[name] = started
	}
	terminal := s.terminals[name]
	if next.command != "" {
		if err := terminal.enter(next.command); err != nil {
			return nil, nil, err
		}
	}
	shown = next.output
	if terminal.loose {
		shown = append([]string{"..."}, shown...)
	}
	output, err = terminal.wait(name != readersTerminal && next.command != "^C", shown)
	terminal.loose = terminal.busy && len(shown) > 0 && shown[len(shown)-1] == "..."
	return shown, output, err
}

// explain says what is wrong with a step: first where and what, then the difference, then advice.
func explain(p *page, b *block, s step, shown, output []string, err error) string {
	command, advice := "$ "+s.command, "if the page is wrong, make docs corrects it"
	if s.command == "" || s.command == "^C" {
		command = fmt.Sprintf("the program in %s terminal", b.terminal())
	}
	command, _, _ = strings.Cut(command, "\n")
	what := "the output differs from the page"
	if errors.Is(err, errPatience) {
		what = fmt.Sprintf("has not printed all that the page shows within %v", *patience)
		advice = fmt.Sprintf("on a slow or busy machine, try -patience %v", 3**patience)
	} else if err != nil {
		what, advice = err.Error(), ""
	}
	lines := []string{p.at(&block{line: b.line + 1 + s.line}, "%s: %s", command, what)}
	if shown != nil || output != nil {
		lines = append(lines, difference(shown, output))
	}
	return strings.TrimSpace(strings.Join(append(lines, advice), "\n"))
}

// unread returns the output of programs that no console of the page shows.
func (s *session) unread(p *page) (problems []string) {
	for name, terminal := range s.terminals {
		if lines, _ := terminal.peek(); !terminal.loose && len(promised(nil, lines)) > 0 {
			problems = append(problems, fmt.Sprintf("%s: the program in %s terminal printed more than "+
				"the page shows\n%s", p.path, name, difference(nil, lines)))
		}
	}
	return problems
}

func TestConsolesShowWhatHappens(t *testing.T) {
	if !*console {
		setting.Long(t)
	}
	filter := regexp.MustCompile(*pageFilter)
	pages := slices.DeleteFunc(allPages(t), func(p *page) bool {
		return !slices.ContainsFunc(p.blocks, isConsole) || !filter.MatchString(p.path)
	})
	// Most commands wait, so there are three sessions beside each other, also on two processors, where
	// t.Parallel runs two. Pages of two sessions never use the same port.
	parts := map[string][]*page{}
	for _, p := range pages {
		folder := "docs"
		if p.chapter() != 0 {
			folder = fmt.Sprintf("docs-chapters-%dx", p.chapter()/10)
		}
		parts[folder] = append(parts[folder], p)
	}
	build(t)
	// Another run would delete the copies of this one: it waits until they are left.
	lock := must.Get(os.Create(root + "/.local/pages.lock"))(t)
	t.Cleanup(func() { _ = lock.Close() })
	must.Do(t, syscall.Flock(int(lock.Fd()), syscall.LOCK_EX))
	sessions := map[string]*session{}
	for folder := range parts {
		sessions[folder] = newSession(t, folder)
	}
	var running sync.WaitGroup
	for folder, s := range sessions {
		running.Go(func() {
			t.Run(folder, func(t *testing.T) { s.executeAll(t, parts[folder]) })
		})
	}
	running.Wait()
}

// executeAll executes pages, one after the other.
func (s *session) executeAll(t *testing.T, pages []*page) {
	for _, p := range pages {
		t.Run(p.path, func(t *testing.T) {
			s.begin(t)
			problems, should := s.execute(p)
			s.end()
			if *update && len(should) > 0 {
				p.set(should)
				p.save(t)
				t.Logf("rewritten, because:\n%s", strings.Join(problems, "\n"))
				return
			}
			report(t, problems)
		})
	}
}

func isConsole(b *block) bool { return b.language == "console" }

// Each transcript rests on the comparison of outputs.
func TestBrokenConsolesAreNoticed(t *testing.T) {
	for text, want := range map[string]string{
		"```console\n$ echo hello\ngoodbye\n```":                                         "00-broken.md:2: $ echo hello: the output differs",
		"**In a terminal:**\n```console\n$ cat <<<$'hello\\nmore'; sleep 60\nhello\n```": "in a terminal printed more",
	} {
		s := &session{folder: t.TempDir(), env: os.Environ(), terminals: map[string]*terminal{}}
		defer s.end()
		problems, _ := s.execute(must.Get(parsePage("docs/tutorial/00-broken.md", text))(t))
		if len(problems) != 1 || !strings.Contains(problems[0], want) {
			t.Errorf("problems: got %q, want one that contains %q", problems, want)
		}
	}
}
