package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

const (
	page       = root + "/docs/performance.md"
	shortRun   = "results/short.json"
	longRun    = "results/long.json"
	websiteRun = "results/websites.json"
	plotFolder = "results"
)

// marked matches the tables of the page, with the marks around them, which name the file of the
// figures and the table: "<!-- bench: short cost-paused -->" and "<!-- end of bench -->".
var marked = regexp.MustCompile(
	`(?s)(<!-- bench: (short|long|both|websites) ([a-z-]+) -->\n).*?(<!-- end of bench -->)`)

// fill returns the text of a page with the tables of these results.
func fill(text string, short, long, websites *Results) (filled string, err error) {
	results := map[string]*Results{"short": short, "long": long, "websites": websites}
	filled = marked.ReplaceAllStringFunc(text, func(place string) string {
		parts := marked.FindStringSubmatch(place)
		var table string
		if parts[2] == "both" {
			table = targets(short, long)
		} else if render := tables[parts[3]]; render != nil {
			table = render(results[parts[2]])
		} else {
			err = fmt.Errorf("there is no table %q", parts[3])
			return place
		}
		return parts[1] + "\n" + table + "\n" + parts[4]
	})
	return filled, err
}

// draw writes the tables and the plots of the page, from the files of results.
func draw() error {
	short, err := readResults(shortRun)
	if err != nil {
		return err
	}
	long, err := readResults(longRun)
	if err != nil {
		return err
	}
	websites, err := readResults(websiteRun)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	filled, err := fill(string(text), short, long, websites)
	if err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	for name, plot := range plots(short, long) {
		if err := plot.write(filepath.Join(plotFolder, name+".svg")); err != nil {
			return fmt.Errorf("drawing %s: %w", name, err)
		}
	}
	return os.WriteFile(page, []byte(filled), 0o644)
}
