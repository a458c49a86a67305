package tutorial

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// How fast a newcomer reads, and types and runs commands. Once everything is compiled, no command
// of the pages takes longer than this, except `make cluster`.
const (
	wordsPerMinute    = 150
	codePerMinute     = 20 // lines
	commandsPerMinute = 2
)

var (
	minutesInRow  = regexp.MustCompile(`(?m)^\| \[[^\]]*\]\(([^)#]+)\) \|.*\| (\d+) \|$`)
	minutesInItem = regexp.MustCompile(`\[[^\]]*\]\(([^)#]+)\)[^[]*?(\d+)\s+minutes`)
	minutesOfPage = regexp.MustCompile(`(\d+)\s+minutes`)
)

// minutes returns how long it takes to work through a page, to the nearest five minutes.
func (p *page) minutes() int {
	words := len(strings.Fields(htmlNote.ReplaceAllString(p.prose(), "")))
	code, commands := 0, 0
	for _, b := range p.blocks {
		switch b.language {
		case "go", "diff", "yaml":
			code += len(b.body)
		case "console":
			for _, step := range steps(b.body) {
				if step.command != "" && step.command != "^C" {
					commands++
				}
			}
		}
	}
	minutes := float64(words)/wordsPerMinute + float64(code)/codePerMinute +
		float64(commands)/commandsPerMinute
	return max(1, int(math.Round(minutes/5))) * 5
}

// checkMinutes returns the times that are wrong, in the overview of the pages and in the pages
// themselves.
func checkMinutes(pages []*page) (problems []string) {
	byPath := map[string]*page{}
	for _, p := range pages {
		byPath[p.path] = p
	}
	overview := byPath["docs/README.md"]
	text := strings.Join(overview.lines, "\n")
	for _, match := range append(minutesInRow.FindAllStringSubmatch(text, -1),
		minutesInItem.FindAllStringSubmatch(text, -1)...) {
		p := byPath[overview.beside(match[1])]
		if p == nil {
			continue // checkLinks reports that the link leads nowhere
		}
		if match[2] != strconv.Itoa(p.minutes()) {
			problems = append(problems, fmt.Sprintf("%s: %s minutes for %s, want %d",
				overview.path, match[2], match[1], p.minutes()))
		}
		if said := minutesOfPage.FindStringSubmatch(p.prose()); said != nil &&
			said[1] != strconv.Itoa(p.minutes()) {
			problems = append(problems, fmt.Sprintf("%s: %s minutes, want %d", p.path, said[1], p.minutes()))
		}
	}
	if len(problems) == 0 && len(minutesInRow.FindAllString(text, -1)) < 9 {
		problems = append(problems, "the times of the chapters were not found")
	}
	return problems
}

func TestMinutesAreThoseThatItTakes(t *testing.T) {
	report(t, checkMinutes(allPages(t)))
}

func TestMinutesThatAreWrongAreNoticed(t *testing.T) {
	pages := allPages(t)
	for i, p := range pages {
		if p.path != "docs/README.md" {
			continue
		}
		text := strings.Join(p.lines, "\n")
		wrong, err := parsePage(p.path, regexp.MustCompile(`(01-polling.md\) \|.*\|) \d+ \|`).
			ReplaceAllString(text, "$1 95 |"))
		if err != nil {
			t.Fatal(err)
		}
		pages[i] = wrong
	}
	expectProblem(t, checkMinutes(pages), "95 minutes for tutorial/01-polling.md")
}
