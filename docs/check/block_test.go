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

func TestBlocksAreBound(t *testing.T) {
	for _, p := range allPages(t) {
		report(t, checkBlocks(p))
	}
}
