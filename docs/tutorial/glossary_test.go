package tutorial

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// term is a word of the glossary.
type term struct {
	name    string
	chapter int // the number of the chapter that introduces it, or 0 if another page does
}

var (
	// glossaryRow matches "| words | meaning | [tutorial 4](...) |". Each of the words is a term.
	glossaryRow = regexp.MustCompile(`(?m)^\| ([^|]+) \| .+ \| \[(?:tutorial (\d+)|[^\]]+)\]\([^)]+\) \|$`)
	inlineCode  = regexp.MustCompile("`[^`]*`")
	linkText    = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	aside       = regexp.MustCompile(`(?m)^>.*$`)
	italics     = regexp.MustCompile(`\*([^*\s][^*]*)\*`)
)

// terms returns the terms of a glossary.
func terms(text string) (terms []term) {
	for _, row := range glossaryRow.FindAllStringSubmatch(text, -1) {
		chapter, _ := strconv.Atoi(row[2])
		for name := range strings.SplitSeq(row[1], ", ") {
			terms = append(terms, term{name: name, chapter: chapter})
		}
	}
	return terms
}

// stressed are words in italics that are not terms.
var stressed = []string{
	"0", "absent", "all others", "and", "are", "background", "callbacks", "done", "is gone", "once",
	"program's terminal", "refuses", "replicas", "should be", "this", "what happened", "without",
	"your terminal",
}

// isTerm reports whether words in italics are a term: neither stressed nor a sentence.
func isTerm(words string) bool {
	return len(strings.Fields(words)) <= 3 && !strings.HasSuffix(words, ".") &&
		!slices.Contains(stressed, strings.ToLower(words))
}

// checkTerms returns the terms that a chapter uses although only a later chapter introduces them.
// It also returns those that it should introduce, in *italics*, but does not, and those that it
// introduces although the glossary lacks them. Code, links and asides do not count.
func checkTerms(p *page, chapter int, terms []term) (problems []string) {
	prose := p.prose()
	for _, leaveOut := range []*regexp.Regexp{inlineCode, linkText, aside} {
		prose = leaveOut.ReplaceAllString(prose, "")
	}
	prose = strings.ReplaceAll(prose, "\n", " ")
	emphasized := italics.FindAllStringSubmatch(strings.ReplaceAll(prose, "**", ""), -1)
	introduced := ""
	for _, match := range emphasized {
		introduced += " *" + match[1] + "*"
		if isTerm(match[1]) && !slices.ContainsFunc(terms, func(term term) bool {
			return strings.EqualFold(strings.TrimSuffix(match[1], "s"), strings.TrimSuffix(term.name, "s"))
		}) {
			problems = append(problems, fmt.Sprintf("%s introduces %q, which is not in the glossary",
				p.path, match[1]))
		}
	}
	for _, term := range terms {
		word := `(?i)\b` + regexp.QuoteMeta(term.name)
		if unicode.IsUpper(rune(term.name[0])) {
			word = `\b` + regexp.QuoteMeta(term.name) // an Event is not an event
		}
		switch {
		case term.chapter == chapter:
			if !regexp.MustCompile(word).MatchString(introduced) {
				problems = append(problems, fmt.Sprintf("%s does not introduce %q, in *italics*, as the "+
					"glossary says", p.path, term.name))
			}
		case term.chapter > chapter:
			if found := regexp.MustCompile(word + `s?\b`).FindStringIndex(prose); found != nil {
				begin, end := max(0, found[0]-40), min(len(prose), found[1]+40)
				problems = append(problems, fmt.Sprintf("%s uses %q, which chapter %d introduces: ...%s...",
					p.path, term.name, term.chapter, prose[begin:end]))
			}
		}
	}
	return problems
}

func TestChaptersUseNoTermBeforeItIsIntroduced(t *testing.T) {
	var all []term
	pages := allPages(t)
	for _, p := range pages {
		if p.path == "docs/glossary.md" {
			all = terms(strings.Join(p.lines, "\n"))
		}
	}
	if len(all) < 30 {
		t.Fatalf("terms in the glossary: got %d, want 30 or more", len(all))
	}
	for _, p := range pages {
		if chapter := p.chapter(); chapter != 0 {
			report(t, checkTerms(p, chapter, all))
		}
	}
}

func TestTermsThatComeTooEarlyAreNoticed(t *testing.T) {
	all := terms("| informer, lister | it is told | [tutorial 2](tutorial/02-informer.md) |\n" +
		"| reflector | lists | [under the hood](controller-client-go.md#reflector) |")
	for _, test := range []struct{ text, want string }{
		{"Informers tell you.", `uses "informer"`},
		{"An `informer` and [an informer](02-informer.md).\n> An informer.", ""},
	} {
		problems := checkTerms(brokenPage(t, test.text), 1, all)
		if test.want == "" && len(problems) > 0 {
			t.Errorf("%s: got %q, want no problem", test.text, problems)
		}
		if test.want != "" {
			expectProblem(t, problems, test.want)
		}
	}
	problems := checkTerms(brokenPage(t, "An *informer* has a lister."), 2, all)
	expectProblem(t, problems, `does not introduce "lister"`)
	problems = checkTerms(brokenPage(t, "*Informers* and a *lister* have a *gizmo*."), 2, all)
	expectProblem(t, problems, `introduces "gizmo"`)
}
