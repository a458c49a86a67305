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
	"docs/review.md", "docs/deconstructed.md", "docs/glossary.md",
	"docs/README.md", "docs/learn", "docs/learn.md", "docs/frameworks.md",
	"docs/performance.md", "docs/forking.md", "docs/server-side-apply.md", "docs/lens/index.html",
	"docs/lens/recordings", "docs/lens/pictures", "test/lens/recordings_test.go", "examples",
	".github/workflows/page.yaml", "lens/kubectl", "lens/main_js.go", "lens/play",
	"lens/program_js.go", "test/lens/play_test.go", "test/apiserver",
	"test/bench", "hack/fork", "internal/testing/mutants/website.txt",
	"docs/foos", "internal/prologue", "hack/commands_test.go",
	"CHANGELOG.md", ".ci",
}

// part is what a fork has if it is asked for: files, and how other files speak of them.
type part struct {
	name  string
	paths []string // path.Match patterns, or folders
	words string   // a regular expression
}

// clusters is what several parts need.
const clusters = "test/internal/cluster"

var parts = []part{
	{name: "faults",
		paths: []string{"test/faults", clusters, "hack/faults-all", "docs/reliability.md",
			"explore_errors_test.go"},
		words: `make (?:faults(?:-long|-all|[^-]|$)|soak)|STEPS=faults|go test \./faults|^## Faults|^## A soak`},
	{name: "fuzz", paths: []string{"hack/fuzz", "writes_fuzz_test.go"}, words: `make fuzz|^fuzz:`},
	{name: "internal-tests", paths: []string{"internal/*/*_test.go", "internal/testing/fakes/*_test.go",
		"internal/testing/cleanup/*_test.go", "internal/testing/freeport/*_test.go",
		"internal/testing/suite/*_test.go", "internal/testing/suite/audit/*_test.go"}},
	{name: "lens",
		paths: []string{"lens", "lens/wire", "test/lens", "docs/lens", "docs/lens.md", clusters,
			"internal/testing/mutants/wire.txt", "internal/testing/scenarios/film.go"},
		words: `\b(make|[Tt]he) lens\b|\./lens\b|chromium`},
	{name: "monitoring-tests", paths: []string{"test/monitoring", clusters}, words: `\./monitoring\b`},
	{name: "more-conformance", paths: []string{"test/conformance/contest_test.go",
		"test/conformance/replicas_test.go", "test/conformance/surprise_test.go"}},
	{name: "mutants", paths: []string{"internal/testing/mutants"},
		words: `[Mm]utants?\b|conformance-broken`},
	{name: "owned", paths: []string{"internal/extra/finalizer", "internal/extra/owned"}},
	{name: "pages", paths: []string{"docs/debugging.md", "docs/explore.md", "docs/explore",
		"docs/testing.md"}},
	{name: "release", paths: []string{".github/workflows/release.yaml", "hack/image", "hack/release",
		"hack/release_test.go", "hack/e2e", "hack/scripts_test.go", "hack/settings_test.go",
		"hack/places_test.go", "hack/strangers_test.go",
		"test/conformance/image_test.go"},
		words: `^## A release|make (?:image|stress)|step_(?:image|release|scripts)|NOT RUN: the test of the image`},
	{name: "security", paths: []string{"artifacts/deploy/policy", "docs/security.md",
		"test/conformance/editors_test.go", "test/conformance/owners_test.go",
		"test/conformance/policy_table_test.go",
		"test/conformance/policy_test.go", "test/conformance/token_test.go"}},
}

// partNames returns the names of all parts.
func partNames() (all []string) {
	for _, p := range parts {
		all = append(all, p.name)
	}
	return all
}

// omission is all that a fork does not get. Nothing in the fork refers to it.
type omission struct {
	paths []string
	path  *regexp.Regexp
	words *regexp.Regexp
}

// omit returns the omission of what is about this project, and of all parts but some. The example,
// which is another template, has fewer parts, and always its library for children.
func omit(r *repository, with []string) (*omission, error) {
	all := partNames()
	if r.others != nil {
		all = exampleParts
	}
	for _, name := range with {
		if name != "all" && !slices.Contains(all, name) {
			return nil, fmt.Errorf("--with %q: there is no such part; write all, or some of %s", name,
				strings.Join(all, ","))
		}
	}
	switch {
	case slices.Contains(with, "all"):
		with = all
	case r.others != nil:
		with = append(with, "owned")
	}
	o := &omission{paths: slices.Clone(project)}
	isIn := func(p part) bool { return slices.Contains(with, p.name) }
	words := []string{`\./apiserver\b|make play|step_lens-play`} // in a step of the tests
	for _, p := range parts {
		if isIn(p) {
			continue
		}
		for _, path := range p.paths {
			if !slices.ContainsFunc(parts, func(other part) bool {
				return isIn(other) && slices.Contains(other.paths, path)
			}) {
				o.paths = append(o.paths, path)
			}
		}
		if p.words != "" {
			words = append(words, p.words)
		}
	}
	o.path = mentioned(o.paths)
	o.words = regexp.MustCompile("(?m)" + strings.Join(words, "|"))
	return o, nil
}

// has reports whether a fork does not get this file.
func (o *omission) has(file string) bool { return isIn(file, o.paths) }

// mentioned finds paths as they are written from the root or from a folder. A word alone is a path
// only if a slash follows, or if a script excludes it (":!examples").
func mentioned(out []string) *regexp.Regexp {
	var paths []string
	for _, out := range out {
		switch {
		case strings.Contains(out, "*"): // nobody writes it in full
		case strings.ContainsAny(out, "/."):
			paths = append(paths, regexp.QuoteMeta(out)+`(?:$|[^\w-])`)
		default:
			paths = append(paths, "(?:"+out+"/|!"+out+`\b)`)
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
	if found := o.words.FindString(text); found != "" {
		return found
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

// anchor finds a link to a heading.
var anchor = regexp.MustCompile(`\[([^\]]*)\]\(([^)\s#]*\.md)?#([\p{L}\p{Nd}_-]+)\)`)

// Marks for the checks of the pages, which a fork does not get. Nothing there keeps a listing up to
// date, so the page says how old it is.
var (
	codeMark = regexp.MustCompile(`(?m)^<!-- code: (\S*?([^/\s]+)) (.*) -->\n`)
	mark     = regexp.MustCompile(`(?m)^ *<!-- (?:code|edit|not run).*-->\n`)
)

// withoutMeasurements replaces what was measured or is checked here: a fork must not claim it.
func withoutMeasurements(text string) string {
	text = measured.ReplaceAllString(text, "$1\n")
	text = codeMark.ReplaceAllString(text,
		"[$2]($1), `$3`, on the day when this repository was made:\n\n")
	return mark.ReplaceAllString(text, "")
}

var (
	stepLists = regexp.MustCompile(`(?m)^(?:reader|others)='[^']*'$`)
	stepNames = regexp.MustCompile(`[\w-]+`)
)

// withoutSteps returns hack/test without the names of steps that it has no function for.
func withoutSteps(text string) string {
	return stepLists.ReplaceAllStringFunc(text, func(list string) string {
		name, steps, _ := strings.Cut(list, "=")
		steps = stepNames.ReplaceAllStringFunc(steps, func(step string) string {
			if !strings.Contains(text, "\nstep_"+step+"()") {
				return ""
			}
			return step
		})
		lines := strings.FieldsFunc(strings.Trim(steps, "'"), func(r rune) bool { return r == '\n' })
		for i := range lines {
			lines[i] = strings.Join(strings.Fields(lines[i]), " ")
		}
		lines = slices.DeleteFunc(lines, func(line string) bool { return line == "" })
		return name + "='" + strings.Join(lines, "\n") + "'"
	})
}

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
