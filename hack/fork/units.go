package main

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// project is what is about this project and not about a controller.
var project = []string{
	"docs/check", "docs/tutorial", "docs/clientgo", "docs/controller-client-go.md",
	"docs/closing.md", "docs/deconstructed.md", "docs/elsewhere.md", "docs/glossary.md",
	"docs/README.md", "docs/frameworks.md",
	"docs/performance.md", "docs/forking.md", "docs/server-side-apply.md", "docs/lens/index.html",
	"docs/lens/recordings", "docs/lens/pictures", "test/lens/recordings_test.go", "examples",
	"test/apply", "test/apiserver", "test/bench", "test/shards", "hack/fork",
	"internal/testing/mutants/website.txt", "internal/testing/foos", "CHANGELOG.md", ".ci",
}

// part is what a fork may do without: files, and how other files speak of them.
type part struct {
	name  string
	paths []string
	words string // a regular expression
}

var parts = []part{
	{name: "faults", paths: []string{"test/faults"},
		words: `make (?:faults(?:-long|[^-]|$)|soak)|STEPS=faults|go test \./faults|^## Faults|^## A soak`},
	{name: "lens",
		paths: []string{"lens", "internal/testing/wire", "test/lens", "docs/lens", "docs/lens.md",
			"internal/testing/mutants/wire.txt", "internal/testing/scenarios/film.go"},
		words: `\b(make|[Tt]he) lens\b|\./lens\b|chromium`},
	{name: "mutants", paths: []string{"internal/testing/mutants"},
		words: `[Mm]utants?\b|conformance-broken`},
}

// omission is all that a fork does not get. Nothing in the fork refers to it.
type omission struct {
	paths []string
	path  *regexp.Regexp
	words *regexp.Regexp // nil if there are none
}

// omit returns the omission of what is about this project, and of some parts.
func omit(without []string) (*omission, error) {
	o := &omission{paths: slices.Clone(project)}
	var names, words []string
	for _, p := range parts {
		names = append(names, p.name)
		if !slices.Contains(without, p.name) {
			continue
		}
		o.paths, words = append(o.paths, p.paths...), append(words, p.words)
	}
	for _, name := range without {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("--without %q: there is no such part; write some of %s", name,
				strings.Join(names, ","))
		}
	}
	o.path = mentioned(o.paths)
	if len(words) > 0 {
		o.words = regexp.MustCompile("(?m)" + strings.Join(words, "|"))
	}
	return o, nil
}

// has reports whether a fork does not get this file.
func (o *omission) has(file string) bool {
	return slices.ContainsFunc(o.paths, func(out string) bool {
		return file == out || strings.HasPrefix(file, out+"/")
	})
}

// mentioned finds paths as they are written from the root or from a folder. A word alone is a path
// only if a slash follows, or if a script excludes it (":!examples").
func mentioned(out []string) *regexp.Regexp {
	paths := make([]string, len(out))
	for i, out := range out {
		paths[i] = regexp.QuoteMeta(out) + `(?:$|[^\w-])`
		if !strings.ContainsAny(out, "/.") {
			paths[i] = "(?:" + out + "/|!" + out + `\b)`
		}
	}
	return regexp.MustCompile(`(?m)(?:^|[^\w./-])(?:(?:\.\.?/)*)(` + strings.Join(paths, "|") + ")")
}

var link = regexp.MustCompile(`\]\(([^)\s#]+)`)

// mention returns what the text of a file says of what is left out, or "".
func (o *omission) mention(file, text string) string {
	if found := o.path.FindStringSubmatch(text); found != nil {
		return strings.TrimRight(found[1], " )]'\"/`,;:\n\t")
	}
	if o.words != nil {
		if found := o.words.FindString(text); found != "" {
			return found
		}
	}
	if path.Ext(file) != ".md" {
		return ""
	}
	for _, target := range link.FindAllStringSubmatch(text, -1) {
		if to := path.Join(path.Dir(file), target[1]); o.has(to) {
			return to
		}
	}
	return ""
}

// approval is the annotation that a CRD of a protected group needs, and no other CRD may have.
const approval = "api-approved.kubernetes.io"

// withoutUnits returns the text of a file without the units for which drop returns true. In
// Markdown, units are paragraphs, list items, rows of tables and blocks; in scripts, Makefiles,
// workflows, go.mod and .gitignore, what stands between empty lines. Other files stay whole.
func withoutUnits(file, text string, drop func(unit string) bool) string {
	isScript := strings.HasPrefix(text, "#!") || file == ".gitignore" || file == "go.mod" ||
		path.Base(file) == "Makefile" || path.Dir(file) == ".github/workflows"
	var units []string
	switch {
	case path.Ext(file) == ".md":
		units = withoutSections(markdownUnits(text), drop)
	case isScript:
		units = strings.SplitAfter(text, "\n\n")
	default:
		return text
	}
	kept := slices.DeleteFunc(units, drop)
	if path.Ext(file) == ".md" {
		kept = renumbered(withoutEmptySections(kept))
	}
	joined := strings.Join(kept, "")
	for strings.Contains(joined, "\n\n\n") {
		joined = strings.ReplaceAll(joined, "\n\n\n", "\n\n")
	}
	return strings.Trim(joined, "\n") + "\n"
}

var number = regexp.MustCompile(`^[0-9]+\. `)

// renumbered numbers the items of lists anew. A list ends at the next heading.
func renumbered(units []string) []string {
	last := 0
	for i, unit := range units {
		switch {
		case strings.HasPrefix(unit, "#"):
			last = 0
		case number.MatchString(unit):
			if strings.HasPrefix(unit, "1. ") {
				last = 0
			}
			last++
			units[i] = number.ReplaceAllString(unit, fmt.Sprintf("%d. ", last))
		}
	}
	return units
}

// beginsUnit matches lines that do not continue the paragraph before them.
var beginsUnit = regexp.MustCompile("^(#|\\||- |\\* |[0-9]+\\. |```|<!--|\n)")

// markdownUnits splits a page into headings, paragraphs, list items, table rows, and blocks with
// the comment above them. Empty lines are units of their own.
func markdownUnits(text string) (units []string) {
	inBlock, joins := false, false
	for line := range strings.Lines(text) {
		fence := strings.HasPrefix(line, "```")
		begins := !inBlock && beginsUnit.MatchString(line) && !joins
		afterEmpty := len(units) > 0 && strings.TrimSpace(units[len(units)-1]) == ""
		if len(units) == 0 || begins || !inBlock && afterEmpty && !joins {
			units = append(units, line)
		} else {
			units[len(units)-1] += line
		}
		joins = false
		switch {
		case fence:
			inBlock = !inBlock
		case !inBlock && strings.HasPrefix(line, "<!--"):
			joins = true
		}
		if fence && !inBlock {
			units = append(units, "") // what follows a block is another unit
		}
	}
	return units
}

// measured finds what a page says of measurements that were made here, and what a fork says
// instead.
var measured = regexp.MustCompile(
	`(?s)<!-- measured here; a fork says:\s(.*?)\s?-->\n.*?\n<!-- so far measured here -->\n`)

// evidence finds rows of tables with a date, which say what was proven here, and when.
var evidence = regexp.MustCompile(`^\|.* \| 20\d\d-\d\d-\d\d \|`)

// withoutMeasurements replaces what was measured here: a fork must not claim it.
func withoutMeasurements(text string) string { return measured.ReplaceAllString(text, "$1\n") }

// level returns the level of a heading, or 0 if the unit is none.
func level(unit string) int { return len(unit) - len(strings.TrimLeft(unit, "#")) }

// withoutSections drops the sections whose headings drop returns true for.
func withoutSections(units []string, drop func(unit string) bool) (kept []string) {
	dropped := 0 // the level of the section that is being dropped
	for _, unit := range units {
		if l := level(unit); l > 0 && (dropped == 0 || l <= dropped) {
			dropped = 0
			if drop(unit) {
				dropped = l
			}
		}
		if dropped == 0 {
			kept = append(kept, unit)
		}
	}
	return kept
}

// withoutEmptySections drops headings at the end, and headings before another one of the same or a
// higher level.
func withoutEmptySections(units []string) (kept []string) {
	for i, unit := range units {
		if level(unit) == 0 {
			kept = append(kept, unit)
			continue
		}
		next := i + 1
		for next < len(units) && strings.TrimSpace(units[next]) == "" {
			next++
		}
		if next < len(units) && (level(units[next]) == 0 || level(units[next]) > level(unit)) {
			kept = append(kept, unit)
		}
	}
	return kept
}

// withoutApproval drops the comment in Go that asks for the annotation, if the group is not
// protected.
func withoutApproval(file, text string) string {
	if path.Ext(file) != ".go" {
		return text
	}
	lines := slices.Collect(strings.Lines(text))
	lines = slices.DeleteFunc(lines, func(line string) bool {
		return strings.HasPrefix(strings.TrimSpace(line), "//") && strings.Contains(line, approval)
	})
	return strings.Join(lines, "")
}
