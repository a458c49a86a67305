package main

import (
	"fmt"
	"os"
	"regexp"
)

const page = root + "/docs/performance.md"

// marked matches the tables of the page, with the marks around them, which name the file of the
// figures and the table: "<!-- bench: short cost-paused -->" and "<!-- end of bench -->".
var marked = regexp.MustCompile(
	`(?s)(<!-- bench: ([a-z]+) ([a-z-]+) -->\n).*?(<!-- end of bench -->)`)

// fill returns the text of a page with the tables of the results.
func fill(text string) (filled string, err error) {
	filled = marked.ReplaceAllStringFunc(text, func(place string) string {
		parts := marked.FindStringSubmatch(place)
		results, problem := readResults("results/" + parts[2] + ".json")
		render := tables[parts[3]]
		switch {
		case problem != nil:
			err = problem
		case render == nil:
			err = fmt.Errorf("there is no table %q", parts[3])
		default:
			return parts[1] + "\n" + render(results) + "\n" + parts[4]
		}
		return place
	})
	return filled, err
}

// draw writes the tables of the page, from the files of results.
func draw() error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	filled, err := fill(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	return os.WriteFile(page, []byte(filled), 0o644)
}
