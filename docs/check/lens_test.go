package check

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// watchLine matches the paragraph of a chapter that leads to the lens.
var watchLine = regexp.MustCompile(
	"\\*\\*Watch it:\\*\\* `make lens(?: PROGRAM=\\./(\\S+))?`[^*]*`docs/lens/index\\.html#(\\S+)`")

// checkWatchLine returns what is wrong with the paragraph that leads from a chapter to the lens.
func checkWatchLine(p *page) (problems []string) {
	found := watchLine.FindStringSubmatch(strings.Join(p.lines, " "))
	if found == nil {
		return []string{p.path + `: no paragraph that begins with "**Watch it:**"`}
	}
	for _, file := range []string{found[1], "docs/lens/recordings/" + found[2]} {
		if _, err := os.Stat(filepath.Join(root, file)); err != nil {
			problems = append(problems, fmt.Sprintf("%s: %v", p.path, err))
		}
	}
	return problems
}

// The program of chapter 1 asks once and ends, so there is nothing to watch. Those after chapter 10
// are not built by 'make lens', or have no recording of their own.
func TestChaptersCanBeWatched(t *testing.T) {
	for _, p := range allPages(t) {
		if p.chapter() > 1 && p.chapter() <= 10 {
			report(t, checkWatchLine(p))
		}
	}
}

func TestChaptersThatCannotBeWatchedAreNoticed(t *testing.T) {
	const line = "**Watch it:** `make lens PROGRAM=./docs/tutorial/%s` or open\n`docs/lens/index.html#%s`"
	expectProblem(t, checkWatchLine(brokenPage(t, "Nothing.")), "Watch it")
	expectProblem(t, checkWatchLine(brokenPage(t, fmt.Sprintf(line, "04-queue", "no.js"))), "no.js")
	expectProblem(t, checkWatchLine(brokenPage(t, fmt.Sprintf(line, "00-no", "04-queue.js"))), "00-no")
}
