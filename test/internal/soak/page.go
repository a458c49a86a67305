package soak

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// The page with the figures, and the folder with the results of its run.
const (
	page    = "../../../docs/reliability.md"
	results = "../../faults/results"
)

// marked matches the place of the figures in the page, with the marks around it.
var marked = regexp.MustCompile(`(?s)(<!-- soak: [^\n]* -->\n).*?(<!-- end of soak -->)`)

// fill returns the text of a page with the figures of the results.
func (r *Results) fill(text string) (filled string, err error) {
	if !marked.MatchString(text) {
		return "", fmt.Errorf("nothing matches %s", marked)
	}
	figures := "<!-- measured here; a fork says:\n" +
		"`make soak` writes the figures of this controller here. -->\n\n" +
		r.markdown() + "\n<!-- so far measured here -->\n"
	return marked.ReplaceAllStringFunc(text, func(place string) string {
		parts := marked.FindStringSubmatch(place)
		return parts[1] + figures + parts[2]
	}), nil
}

// markdown returns the figures as the page shows them.
func (r *Results) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Run on %s for %.0f minutes, on %d processors, with %s:\n\n",
		r.Date, r.minutes(), r.Processors, r.Go)
	b.WriteString("| when it was quiet | second quarter | last quarter | most at any time |\n" +
		"|---|---|---|---|\n")
	quiet := settled(r.Measurements)
	for _, f := range figures {
		second, last := f.quarters(quiet)
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n",
			f.name, f.text(second), f.text(last), f.text(f.most(r.Measurements)))
	}
	fmt.Fprintf(&b, "\n| | |\n|---|---|\n| moments of quiet | %d |\n", len(quiet))
	for _, counts := range []map[string]int{r.Done, r.Found} {
		for _, what := range slices.Sorted(maps.Keys(counts)) {
			fmt.Fprintf(&b, "| %s | %s |\n", what, thousands(counts[what]))
		}
	}
	fmt.Fprintf(&b, "\n![Memory, goroutines, connections and queue depth over time](%s)\n",
		path.Join("../test/internal/soak", results, plot))
	return b.String()
}

// thousands writes a number as the pages do: 2,220.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}
