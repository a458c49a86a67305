package main

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// leftOut is what is about this project and not about a controller. Nothing in a fork refers to it.
var leftOut = []string{
	"docs/tutorial", "docs/clientgo", "docs/controller-client-go.md", "docs/deconstructed.md",
	"docs/glossary.md", "docs/README.md", "docs/frameworks.md", "docs/performance.md",
	"docs/forking.md", "docs/server-side-apply.md", "docs/lens/index.html", "docs/lens/recordings",
	"docs/lens/pictures", "test/lens/recordings_test.go", "examples", "test/apply", "test/bench",
	"hack/fork", "CHANGELOG.md", ".ci",
}

// isLeftOut reports whether a fork does not get this file.
func isLeftOut(file string) bool {
	return slices.ContainsFunc(leftOut, func(out string) bool {
		return file == out || strings.HasPrefix(file, out+"/")
	})
}

// mentioned finds the paths of leftOut, as they are written from the root or from a folder. A word
// alone is a path only if a slash follows, or if a script excludes it (":!examples").
var mentioned = func() *regexp.Regexp {
	paths := make([]string, len(leftOut))
	for i, out := range leftOut {
		paths[i] = regexp.QuoteMeta(out) + `(?:$|[^\w-])`
		if !strings.ContainsAny(out, "/.") {
			paths[i] = "(?:" + out + "/|!" + out + `\b)`
		}
	}
	return regexp.MustCompile(`(?m)(?:^|[^\w./-])(?:(?:\.\.?/)*)(` + strings.Join(paths, "|") + ")")
}()

var link = regexp.MustCompile(`\]\(([^)\s#]+)`)

// mention returns a path in the text of a file that is left out, or "".
func mention(file, text string) string {
	if found := mentioned.FindStringSubmatch(text); found != nil {
		return strings.TrimRight(found[1], " )]'\"/`,;:\n\t")
	}
	if path.Ext(file) != ".md" {
		return ""
	}
	for _, target := range link.FindAllStringSubmatch(text, -1) {
		if to := path.Join(path.Dir(file), target[1]); isLeftOut(to) {
			return to
		}
	}
	return ""
}

// approval is the annotation that a CRD of a protected group needs, and no other CRD may have.
const approval = "api-approved.kubernetes.io"

// withoutUnits returns the text of a file without the units for which drop returns true. In
// Markdown, units are paragraphs, list items, rows of tables and blocks; in scripts and Makefiles,
// what stands between empty lines. Other files stay whole.
func withoutUnits(file, text string, drop func(unit string) bool) string {
	isScript := strings.HasPrefix(text, "#!") || path.Base(file) == "Makefile"
	var units []string
	switch {
	case path.Ext(file) == ".md":
		units = markdownUnits(text)
	case isScript:
		units = strings.SplitAfter(text, "\n\n")
	default:
		return text
	}
	kept := slices.DeleteFunc(units, drop)
	if path.Ext(file) == ".md" {
		kept = withoutEmptySections(kept)
	}
	joined := strings.Join(kept, "")
	for strings.Contains(joined, "\n\n\n") {
		joined = strings.ReplaceAll(joined, "\n\n\n", "\n\n")
	}
	return strings.Trim(joined, "\n") + "\n"
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

// withoutEmptySections drops headings at the end, and headings before another one of the same or a
// higher level.
func withoutEmptySections(units []string) (kept []string) {
	level := func(unit string) int {
		return len(unit) - len(strings.TrimLeft(unit, "#"))
	}
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
	if path.Ext(file) != ".go" || isLeftOut(file) {
		return text
	}
	lines := slices.Collect(strings.Lines(text))
	lines = slices.DeleteFunc(lines, func(line string) bool {
		return strings.HasPrefix(strings.TrimSpace(line), "//") && strings.Contains(line, approval)
	})
	return strings.Join(lines, "")
}
