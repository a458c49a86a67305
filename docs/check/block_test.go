package check

import (
	"fmt"
	"os"
	"path/filepath"
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

// checkBlocks returns the blocks of a page that a reader would take for executed although they are
// not, and those that do not say in which terminal to type them.
func checkBlocks(p *page) (problems []string) {
	terminal := readersTerminal
	for _, b := range p.blocks {
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
// begin with one that starts an empty control plane: otherwise, its results would depend on what the
// reader did before. And it must say how to stop the control plane.
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
	if !strings.Contains(strings.Join(p.lines, "\n"), "make cluster-down") {
		problems = append(problems, p.path+": it does not name make cluster-down")
	}
	return problems
}

func TestPagesBeginWithAnEmptyControlPlane(t *testing.T) {
	for _, p := range allPages(t) {
		report(t, checkClusters(p))
	}
}

// TestChaptersLeadToTheNextPage: each chapter has a link to the next one, and the last to the reviews.
func TestChaptersLeadToTheNextPage(t *testing.T) {
	var last *page
	leadsTo := func(next string) {
		if last != nil && !strings.Contains(strings.Join(last.lines, "\n"), "]("+next+")") {
			t.Errorf("%s has no link to %s", last.path, next)
		}
	}
	for _, p := range allPages(t) {
		if p.chapter() > 0 {
			leadsTo(filepath.Base(p.path))
			last = p
		}
	}
	leadsTo("../review.md")
}

func TestBlocksAreBound(t *testing.T) {
	for _, p := range allPages(t) {
		report(t, checkBlocks(p))
	}
}
