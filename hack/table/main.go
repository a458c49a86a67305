// Command table reads what the conformance suite prints with -v, and prints a line for the table in
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
	"log"
	"os"
	"regexp"
	"strings"
	"time"
)

func main() {
	name := flag.String("name", "this controller", "`name` of the program that was tested")
	kubernetes := flag.String("kubernetes", "", "`version` of the API server")
	flag.Parse()
	log.SetFlags(0)
	page, err := os.ReadFile("../docs/reliability.md")
	printed, readErr := io.ReadAll(os.Stdin)
	if err := errors.Join(err, readErr); err != nil {
		log.Fatal(err)
	}
	if !result.Match(printed) {
		log.Fatal("the input has no results of tests: is -v missing?")
	}
	cells := append([]string{*name, time.Now().UTC().Format(time.DateOnly), *kubernetes},
		outcomes(string(page), string(printed))...)
	fmt.Printf("| %s |\n", strings.Join(cells, " | "))
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
