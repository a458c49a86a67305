package docs

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

var console = flag.Bool("console", false, "execute the console blocks of all pages, or of those that "+
	"-page matches, on a control plane of their own")
var pageFilter = flag.String("page", "", "a regular `expression` for -console")

// step is a command in a console and what it prints. Of a program that goes on, what it prints
// later is a step without a command.
type step struct {
	command string // a line that begins with "$ " and those that begin with "> ", or ^C
	output  []string
}

// steps takes a console block apart.
func steps(body []string) (all []step) {
	for _, line := range body {
		command, isCommand := strings.CutPrefix(line, "$ ")
		more, isMore := strings.CutPrefix(line, "> ")
		switch {
		case isCommand:
			all = append(all, step{command: command})
		case line == "^C":
			all = append(all, step{command: line})
		case isMore && len(all) > 0 && len(all[len(all)-1].output) == 0:
			all[len(all)-1].command += "\n" + more
		case len(all) == 0:
			all = append(all, step{output: []string{line}})
		default:
			all[len(all)-1].output = append(all[len(all)-1].output, line)
		}
	}
	return all
}

// body puts a console block together again.
func body(all []step) (lines []string) {
	for _, s := range all {
		switch s.command {
		case "":
		case "^C":
			lines = append(lines, s.command)
		default:
			lines = append(lines, "$ "+strings.ReplaceAll(s.command, "\n", "\n> "))
		}
		lines = append(lines, s.output...)
	}
	return lines
}

// varying is what differs from run to run and from machine to machine.
var varying = []struct {
	pattern *regexp.Regexp
	same    string
}{
	{regexp.MustCompile(`^([IWE])\d{4} [\d:.]+ +\d+ (\w+\.go):\d+\]`), "$1 $2]"}, // head of a log line
	{regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`), "UID"},
	{regexp.MustCompile(`-[bcdf-hj-np-tv-z2-9]{8,10}(-[bcdf-hj-np-tv-z2-9]{5})?\b`), "-HASH"},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\dT[\d:.]+Z`), "TIME"},
	{regexp.MustCompile(`\b(\d+(\.\d+)?(ms|µs|[smhd]))+\b|\(cached\)|<invalid>`), "TIME"}, // an age
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "ADDRESS"},
	{regexp.MustCompile(`\b(created|configured|unchanged)$`), "applied"},
	{regexp.MustCompile(`\s+`), " "}, // the columns of a table
}

// normal returns a line of output without what varies.
func normal(line string) string {
	for _, v := range varying {
		line = v.pattern.ReplaceAllString(line, v.same)
	}
	return strings.TrimSpace(line)
}

// matches reports whether the output is the one that a page shows. A line "..." on the page stands
// for any number of lines.
func matches(shown, output []string) bool {
	if len(shown) == 0 {
		return len(output) == 0
	}
	if shown[0] == "..." {
		return matches(shown[1:], output) || len(output) > 0 && matches(shown, output[1:])
	}
	return len(output) > 0 && normal(shown[0]) == normal(output[0]) && matches(shown[1:], output[1:])
}

// outputLines splits output, without the empty lines at its end.
func outputLines(output string) []string {
	output = strings.TrimRight(output, "\n")
	if output == "" {
		return nil
	}
	return strings.Split(output, "\n")
}

// checkEdit returns the file that a diff block is about, and what becomes of its text.
func checkEdit(p *page, b *block, folder string) (file, text string, problems []string) {
	file = filepath.Join(folder, p.beside(b.detail))
	source, err := os.ReadFile(file)
	if err != nil {
		return "", "", []string{p.at(b, "%v", err)}
	}
	var before, after strings.Builder
	for _, line := range b.body {
		if line == "" {
			line = " "
		}
		if line[0] != '+' {
			before.WriteString(line[1:] + "\n")
		}
		if line[0] != '-' {
			after.WriteString(line[1:] + "\n")
		}
	}
	if n := strings.Count(string(source), before.String()); n != 1 {
		return "", "", []string{p.at(b, "what is to be changed is %d times in %s, want once", n, b.detail)}
	}
	return file, strings.Replace(string(source), before.String(), after.String(), 1), nil
}

// checkBlocks returns the blocks of a page that no test executes, although they look like it.
func checkBlocks(p *page) (problems []string) {
	for _, b := range p.blocks {
		switch b.language {
		case "sh":
			if b.directive != "not run" {
				problems = append(problems, p.at(b, "commands that are not executed: make it a console "+
					"block, or say <!-- not run: REASON --> above it"))
			}
		case "console":
			if b.directive == "not run" || len(b.body) == 0 || b.directive == "" && steps(b.body)[0].command == "" {
				problems = append(problems, p.at(b, "a console block must begin with \"$ \""))
			}
		case "diff":
			if b.directive != "edit" {
				problems = append(problems, p.at(b, "a change without <!-- edit: PATH --> above it"))
				break
			}
			_, _, wrong := checkEdit(p, b, root)
			problems = append(problems, wrong...)
		case "":
			problems = append(problems, p.at(b, "a block without a language"))
		}
	}
	return problems
}

func TestBlocksAreBound(t *testing.T) {
	for _, p := range allPages(t) {
		report(t, checkBlocks(p))
	}
}

// session executes pages in a copy of the repository, so that they may change it.
type session struct {
	folder    string
	env       []string
	terminals map[string]*terminal
}

// newSession makes the copy; its built tools and its control planes are those of the original.
func newSession(t *testing.T) *session {
	t.Helper()
	original, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	s := &session{folder: filepath.Join(original, ".local", "docs")}
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); name != "KUBECONFIG" && !strings.HasPrefix(name, "MAKE") {
			s.env = append(s.env, variable)
		}
	}
	s.env = append(s.env, "CLUSTER=docs", "LC_ALL=C", "TERM=dumb")
	s.do(t, original, `rm -rf .local/docs && mkdir -p .local/docs &&
		git ls-files -z --cached --others --exclude-standard | xargs -0 tar -cf - | tar -xf - -C .local/docs`)
	s.do(t, s.folder, `ln -s ../../.local .local && git init -q && git add -A &&
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
				all[i].output, differs = output, true
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
		hasConsole := slices.ContainsFunc(p.blocks, func(b *block) bool { return b.language == "console" })
		if !hasConsole || !filter.MatchString(p.path) {
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
