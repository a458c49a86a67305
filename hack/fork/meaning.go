package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// meaningMark stands in NEXT.md where the table of what speaks of the old meaning belongs.
const meaningMark = "<!-- meaning -->\n"

// The words of the old meanings: of Foos, and of Websites.
var (
	fooWords     = regexp.MustCompile(`(?i)deploymentName|replicas`)
	websiteWords = regexp.MustCompile(`(?i)\b(?:content|replicas|services?|page)\b|configmap`)
)

// meansNothing matches the files in which these words have another meaning.
var meansNothing = regexp.MustCompile(
	`^internal/(?:extra/|[^/]+/[^/]+$)|^hack/[^d]|^LICENSE$|go\.(?:mod|sum)$|^NEXT\.md$`)

type noticing struct {
	files   *regexp.Regexp
	command string
}

// noticedBy says which command notices, in each part of a fork, that the meaning has changed. The
// first pattern that matches a file counts.
var noticedBy = []noticing{
	{regexp.MustCompile(`^internal/testing/mutants/`), "`go test ./internal/testing/mutants`"},
	{regexp.MustCompile(`^test/conformance/|^artifacts/deploy/|^artifacts/examples/`),
		"`make conformance`"},
	{regexp.MustCompile(`^hack/demo`), "`make demo`"},
	{regexp.MustCompile(`^test/`), "`make test-all`"},
	{regexp.MustCompile(`\.go$`), "`go test ./...`"},
	{regexp.MustCompile(``), "nothing: read it"},
}

// addMeaning writes the table into NEXT.md.
func (f *fork) addMeaning() {
	words := fooWords
	if f.from.others != nil {
		words = websiteWords
	}
	rows := ""
	for _, file := range sortedKeys(f.files) {
		var said []string
		for _, word := range words.FindAllString(f.files[file], -1) {
			said = append(said, strings.ToLower(word))
		}
		if said == nil || library.MatchString(file) || meansNothing.MatchString(file) {
			continue
		}
		times := len(said)
		slices.Sort(said)
		fits := slices.IndexFunc(noticedBy, func(n noticing) bool { return n.files.MatchString(file) })
		rows += fmt.Sprintf("| `%s` | %s (%d) | %s |\n", file,
			strings.Join(slices.Compact(said), ", "), times, noticedBy[fits].command)
	}
	f.files["NEXT.md"] = strings.Replace(f.files["NEXT.md"], meaningMark,
		"| file | words of the old meaning, and how many | what is red |\n|---|---|---|\n"+rows, 1)
}
