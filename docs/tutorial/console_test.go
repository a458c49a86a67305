package tutorial

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	console = flag.Bool("console", false, "execute the console blocks of all pages, or of those "+
		"that -page matches, on a control plane of their own")
	pageFilter = flag.String("page", "", "a regular `expression` for -console")
)

// session executes pages in a copy of the repository, so that they may change it.
type session struct {
	folder    string
	env       []string
	terminals map[string]*terminal
}

// newSession makes the copy. Its built tools are those of the original, but not the controller, which
// a page may build from changed files.
func newSession(t *testing.T) *session {
	t.Helper()
	original, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	s := &session{folder: filepath.Join(original, ".local", "docs")}
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if name != "KUBECONFIG" && !strings.HasPrefix(name, "MAKE") {
			s.env = append(s.env, variable)
		}
	}
	s.env = append(s.env, "CLUSTER=docs", "LC_ALL=C", "TERM=dumb")
	s.do(t, original, `rm -rf .local/docs && mkdir -p .local/docs &&
		git ls-files -z --cached --others --exclude-standard |
		xargs -0 tar -cf - | tar -xf - -C .local/docs`)
	s.do(t, s.folder, `mkdir -p .local/bin && ln -s "$PWD"/../bin/* .local/bin/ &&
		rm -f .local/bin/sample-controller && git init -q && git add -A &&
		git -c user.name=docs -c user.email=docs@example.com commit -qm "The pages as they are"`)
	t.Cleanup(func() { s.do(t, s.folder, "hack/cluster down docs") })
	return s
}

// do executes a command that is not on a page.
func (s *session) do(t *testing.T, folder, command string) {
	t.Helper()
	shell := exec.Command("bash", "-c", command)
	shell.Dir, shell.Env = folder, s.env
	if output, err := shell.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, output)
	}
}

// begin prepares for a page: a control plane without Foos, and the files as they were.
func (s *session) begin(t *testing.T) {
	t.Helper()
	s.terminals = map[string]*terminal{}
	s.do(t, s.folder, `hack/cluster up docs && eval "$(hack/cluster kubeconfig docs)" && kubectl() {
		.local/bin/kubectl "$@"
	}
	! kubectl get crd foos.samplecontroller.k8s.io || kubectl delete foos --all &&
		kubectl delete deployments,quota --all && kubectl delete events --all &&
		kubectl wait --for=delete pods --all --timeout=60s &&
		kubectl delete leases --ignore-not-found sample-controller &&
		git reset -q --hard && git clean -qfd`)
}

// end closes the terminals of a page.
func (s *session) end() {
	for _, terminal := range s.terminals {
		terminal.close()
	}
}

// execute makes the edits and executes the consoles of a page. It returns what does not come out
// as the page says, and how the consoles should look.
func (s *session) execute(p *page) (problems []string, should map[*block][]string) {
	should = map[*block][]string{}
	for _, b := range p.blocks {
		if b.directive == "edit" {
			file, text, wrong := checkEdit(p, b, s.folder)
			if wrong != nil {
				return append(problems, wrong...), should
			}
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				return append(problems, p.at(b, "%v", err)), should
			}
		}
		if b.language != "console" {
			continue
		}
		all := steps(b.body)
		differs := false
		for i := range all {
			output, err := s.step(b, all[i])
			if err != nil {
				return append(problems, p.at(b, "$ %s: %v; so far it printed:\n%s", all[i].command, err,
					strings.Join(output, "\n"))), should
			}
			if !matches(all[i].output, output) {
				problems = append(problems, p.at(b, "$ %s\nprints\n%s\nand not\n%s", all[i].command,
					strings.Join(output, "\n"), strings.Join(all[i].output, "\n")))
				all[i].output, differs = refresh(all[i].output, output), true
			}
		}
		if differs {
			should[b] = body(all)
		}
	}
	return problems, should
}

// step executes one step and returns its output.
func (s *session) step(b *block, next step) ([]string, error) {
	name := ""
	if b.directive == "terminal" {
		name = b.detail
	}
	if s.terminals[name] == nil {
		started, err := newTerminal(s.folder, s.env)
		if err != nil {
			return nil, err
		}
		s.terminals[name] = started
	}
	terminal := s.terminals[name]
	if next.command != "" {
		if err := terminal.enter(next.command); err != nil {
			return nil, err
		}
	}
	goesOn := name != "" && next.command != "^C"
	output, err := terminal.wait(goesOn, func(output string) bool {
		return matches(next.output, outputLines(output))
	})
	return outputLines(output), err
}

func TestConsolesShowWhatHappens(t *testing.T) {
	if !*console {
		t.Skip("the console blocks are executed with -console only: it takes minutes")
	}
	filter := regexp.MustCompile(*pageFilter)
	s := newSession(t)
	for _, p := range allPages(t) {
		isConsole := func(b *block) bool { return b.language == "console" }
		if !slices.ContainsFunc(p.blocks, isConsole) || !filter.MatchString(p.path) {
			continue
		}
		t.Run(p.path, func(t *testing.T) {
			s.begin(t)
			defer s.end()
			problems, should := s.execute(p)
			if *update && len(should) > 0 {
				p.set(should)
				if err := p.save(); err != nil {
					t.Fatal(err)
				}
				t.Logf("rewritten, because:\n%s", strings.Join(problems, "\n"))
				return
			}
			report(t, problems)
		})
	}
}

func TestBrokenConsolesAreNoticed(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"another output", "```console\n$ echo hello\ngoodbye\n```", "hello"},
		{"no output", "```console\n$ true\nhello\n```", "prints"},
		{"an output that the page hides", "```console\n$ echo hello\n```", "prints"},
		{"a program that says something else",
			"<!-- terminal: a -->\n```console\n$ echo hello; sleep 60\ngoodbye\n```", "hello"},
		{"a program that says more",
			"<!-- terminal: a -->\n```console\n$ echo hello; sleep 1; echo more\nhello\n$ true\n```",
			"printed more"},
		{"a change that cannot be made",
			"<!-- edit: 99-nothing/main.go -->\n```diff\n-a\n```", "no such file"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := &session{folder: t.TempDir(), env: os.Environ(), terminals: map[string]*terminal{}}
			defer s.end()
			problems, _ := s.execute(brokenPage(t, test.text))
			expectProblem(t, problems, test.want)
		})
	}
}

func TestProgramsGoOnUntilTheyAreInterrupted(t *testing.T) {
	s := &session{folder: t.TempDir(), env: os.Environ(), terminals: map[string]*terminal{}}
	defer s.end()
	problems, _ := s.execute(brokenPage(t, "```console\n$ mkfifo news\n```\n"+
		"<!-- terminal: a -->\n```console\n$ echo ready; cat <>news\nready\n```\n"+
		"```console\n$ echo hello >news\n```\n"+
		"<!-- terminal: a -->\n```console\nhello\n^C\n$ echo back\nback\n```\n"))
	report(t, problems)
}
