package check

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// checkEdit returns the file that a diff block changes, and its text after the change.
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
		return "", "", []string{p.at(b, "the old lines are %d times in %s, want once", n, b.detail)}
	}
	return file, strings.Replace(string(source), before.String(), after.String(), 1), nil
}

// headingAbove matches a page up to a listing, with nothing between its heading and its directive.
var headingAbove = regexp.MustCompile(`(^|\n)#+ [^\n]*\n\s*<!-- code[^\n]*$`)

// checkBlocks returns the blocks of a page that a reader would take for executed although they are
// not, and those that do not say in which terminal to type them.
func checkBlocks(p *page) (problems []string) {
	terminal := readersTerminal
	for _, b := range p.blocks {
		if strings.HasPrefix(p.path, "docs/tutorial/") &&
			headingAbove.MatchString(strings.Join(p.lines[:b.line-1], "\n")) {
			problems = append(problems, p.at(b, "a listing right under a heading: say first what it is for"))
		}
		switch b.language {
		case "sh":
			if b.directive != "not run" {
				problems = append(problems, p.at(b, "the commands are not executed: make it a console "+
					"block, or write <!-- not run: REASON --> above it"))
			}
		case "console":
			noCommand := len(b.body) == 0 || b.terminal() == readersTerminal && steps(b.body)[0].command == ""
			if b.directive == "not run" || noCommand {
				problems = append(problems, p.at(b, "a console block must begin with \"$ \""))
			}
			if b.label == "" && terminal != readersTerminal {
				problems = append(problems, p.at(b, "another terminal than before: write **In "+
					readersTerminal+" terminal:** above it"))
			}
			terminal = b.terminal()
		case "diff":
			if b.directive != "edit" {
				problems = append(problems, p.at(b, "a diff without <!-- edit: PATH --> above it"))
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

// checkClusters returns what is wrong with a page that has commands for a control plane. It must
// begin with one that starts an empty control plane, and end with one that stops it. Otherwise, its
// results would depend on what the reader did before.
func checkClusters(p *page) (problems []string) {
	var commands []string
	for _, b := range p.blocks {
		if b.language != "console" || b.terminal() != readersTerminal {
			continue
		}
		for _, step := range steps(b.body) {
			if strings.Contains(step.command, "kubectl ") || strings.Contains(step.command, "make cluster") {
				commands = append(commands, step.command)
			}
		}
	}
	if len(commands) == 0 {
		return nil
	}
	if first := commands[0]; first != "make cluster-empty" && first != "make cluster-foos" {
		problems = append(problems, fmt.Sprintf("%s: it begins with %q, want make cluster-empty or "+
			"make cluster-foos", p.path, first))
	}
	if last := commands[len(commands)-1]; last != "make cluster-down" {
		problems = append(problems, fmt.Sprintf("%s: it ends with %q, want make cluster-down", p.path, last))
	}
	return problems
}

func TestPagesBeginAndEndWithoutAControlPlane(t *testing.T) {
	for _, p := range allPages(t) {
		report(t, checkClusters(p))
	}
}

func TestPagesThatNeedAControlPlaneAreNoticed(t *testing.T) {
	for text, want := range map[string]string{
		"$ kubectl get foos\n$ make cluster-down":                      "it begins with",
		"$ make cluster-foos\n$ kubectl get foos":                      "it ends with",
		"$ make cluster-foos\n$ kubectl get foos\n$ make cluster-down": "",
		"$ go test .": "",
	} {
		problems := checkClusters(brokenPage(t, "```console\n"+text+"\n```"))
		if want == "" && len(problems) > 0 {
			t.Errorf("%s: got %q", text, problems)
		}
		if want != "" {
			expectProblem(t, problems, want)
		}
	}
}

// checkEnd returns what the end of a chapter lacks, outside of folded answers: the link to the next
// page, and the command that stops the control plane.
func checkEnd(p *page, next string) (problems []string) {
	text := strings.Join(p.lines, "\n")
	_, end, folded := strings.Cut(text[strings.LastIndex(text, "\n<details>")+1:], "\n</details>")
	if !folded {
		end = text
	}
	for _, want := range []string{"](" + next + ")", "\n$ make cluster-down\n"} {
		if !strings.Contains(end, want) {
			problems = append(problems, fmt.Sprintf("%s: its last lines lack %q", p.path, want))
		}
	}
	return problems
}

// lastChapter is the one before the page of reviews.
const lastChapter = 14

func TestChaptersLeadToTheNextPage(t *testing.T) {
	var before *page
	for _, p := range allPages(t) {
		if before != nil && before.chapter() > 0 && p.chapter() == before.chapter()+1 {
			report(t, checkEnd(before, filepath.Base(p.path)))
		}
		if before = p; p.chapter() == lastChapter {
			report(t, checkEnd(p, "../review.md"))
			return
		}
	}
	t.Errorf("there is no chapter %d", lastChapter)
}

func TestEndsThatLeadNowhereAreNoticed(t *testing.T) {
	const right = "[a](a.md)\n$ make cluster-down\n"
	expectProblem(t, checkEnd(brokenPage(t, right), "b.md"), "(b.md)")
	expectProblem(t, checkEnd(brokenPage(t, "[a](a.md)"), "a.md"), "cluster-down")
	inside := brokenPage(t, "\n<details>"+right+"\n</details>[a](a.md)")
	expectProblem(t, checkEnd(inside, "a.md"), "cluster-down")
	outside := brokenPage(t, "\n<details>\n</details>"+right)
	if problems := checkEnd(outside, "a.md"); len(problems) > 0 {
		t.Errorf("a correct end: got %q, want no problem", problems)
	}
}

func TestBlocksAreBound(t *testing.T) {
	for _, p := range allPages(t) {
		report(t, checkBlocks(p))
	}
}

func TestBrokenBlocksAreNoticed(t *testing.T) {
	edit := "<!-- edit: 04-queue/controller.go -->\n```diff\n"
	tests := []struct{ name, text, want string }{
		{"commands that are not executed", "```sh\nmake\n```", "not executed"},
		{"a console without a command", "```console\nhello\n```", "must begin"},
		{"a console that is not run", "<!-- not run: lazy -->\n```console\n$ make\n```", "must begin"},
		{"a change without a file", "```diff\n-a\n+b\n```", "without"},
		{"a change of lines that do not exist", edit + "-\treturn 42\n```", "0 times"},
		{"a change of lines that exist often", edit + "-}\n```", "want once"},
		{"a change of no file", strings.Replace(edit, "04", "99", 1) + "-a\n```", "no such file"},
		{"no language", "```\nmake\n```", "without a language"},
		{"a listing under a heading", "## A\n\n<!-- code: main.go run -->\n```go\n```", "say first"},
		{"another terminal, without a label", "**In the program's terminal:**\n```console\n$ a\n```\n" +
			"```console\n$ b\n```", "another terminal"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			expectProblem(t, checkBlocks(brokenPage(t, test.text)), test.want)
		})
	}
	right := "<!-- not run: needs docker -->\n```sh\nkind\n```\n```console\n$ make\n```\n" +
		"**In another terminal:**\n```console\nhello\n```\n" +
		"**In your terminal:**\n```console\n$ make\n```\n" + edit + "-\tdefer c.queue.Done(key)\n```"
	if problems := checkBlocks(brokenPage(t, right)); len(problems) > 0 {
		t.Errorf("correct blocks: got %q, want no problem", problems)
	}
}
