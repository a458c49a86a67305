// Command table reads what the conformance suite prints with -v, and writes a line of the table in
// docs/reliability.md that says which implementations pass. Another table of this page says which tests
// prove a behaviour.
//
//	go -C test test -count=1 -v ./conformance | go -C hack run ./table -name 'NAME' -kubernetes v1.37.2
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
)

const page = "../docs/reliability.md"

var (
	name       = flag.String("name", "this controller", "`name` of the program that was tested")
	kubernetes = flag.String("kubernetes", "", "`version` of the API server")
)

func main() {
	flag.Parse()
	if err := run(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "table:", err)
		os.Exit(1)
	}
}

func run(printed io.Reader) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	results, err := io.ReadAll(printed)
	if err != nil {
		return err
	}
	cells := append([]string{*name, time.Now().UTC().Format(time.DateOnly), *kubernetes},
		outcomes(string(text), string(results))...)
	changed, err := withRow(string(text), cells)
	if err != nil {
		return err
	}
	if !result.Match(results) {
		return errors.New("the input has no results of tests: is -v missing?")
	}
	return os.WriteFile(page, []byte(changed), 0o644)
}

var (
	behaviour = regexp.MustCompile(`(?m)^\| \d+ \| .* \| (.*) \|$`)
	test      = regexp.MustCompile("`(Test\\w+)`")
	result    = regexp.MustCompile(`(?m)^ *--- (PASS|FAIL|SKIP): (Test\w+)`)
)

// outcomes returns a cell for each behaviour: ✓ if tests have passed and none has failed, ✗ if one has
// failed, or nothing. A test of which a part is skipped says nothing, unless it fails.
func outcomes(page, printed string) (cells []string) {
	found := map[string]string{}
	for _, line := range result.FindAllStringSubmatch(printed, -1) {
		if outcome, test := line[1], line[2]; found[test] == "" || outcome == "FAIL" ||
			outcome == "SKIP" && found[test] == "PASS" {
			found[test] = outcome
		}
	}
	page, _, _ = strings.Cut(page, "\n| implementation |")
	for _, row := range behaviour.FindAllStringSubmatch(page, -1) {
		cell := ""
		for _, test := range test.FindAllStringSubmatch(row[1], -1) {
			switch found[test[1]] {
			case "PASS":
				cell = max(cell, "✓")
			case "FAIL":
				cell = "✗" // which is greater
			}
		}
		cells = append(cells, cell)
	}
	return cells
}

// withRow puts the cells into the table of the page, in place of the row that begins with the same one,
// or as the last row.
func withRow(page string, cells []string) (string, error) {
	lines := strings.Split(page, "\n")
	begins := func(prefix string) int {
		return slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, prefix) })
	}
	row := fmt.Sprintf("| %s |", strings.Join(cells, " | "))
	if at := begins("| " + cells[0] + " |"); at >= 0 {
		lines[at] = row
	} else if at = begins("| implementation |"); at >= 0 {
		lines = slices.Insert(lines, at+slices.Index(lines[at:], ""), row)
	} else {
		return "", errors.New("there is no table of implementations in " + page)
	}
	return strings.Join(lines, "\n"), nil
}
