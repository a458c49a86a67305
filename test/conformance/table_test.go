package conformance

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/sample-controller/internal/testing/suite"
)

// lastBehaviour is the highest number of a behaviour that this suite proves. Another proves
// number 20.
const lastBehaviour = 19

var (
	tableFile = flag.String("table", "", "Markdown `file` with the table to write the results to")
	programID = flag.String("name", "this controller", "`name` of the program in that table")
)

// outcomes says which behaviours were tested, and whether all of their tests passed.
var outcomes = struct {
	sync.Mutex
	passed  map[int]bool
	numbers map[string]int      // of behaviours, by the name of the test that proves it
	leftOut map[int][]exception // by the number of the behaviour
}{passed: map[int]bool{}, numbers: map[string]int{}, leftOut: map[int][]exception{}}

// behaviour records that t proves the behaviour of that number in docs/conformance.md.
func behaviour(t *testing.T, number int) {
	t.Helper()
	outcomes.Lock()
	outcomes.numbers[t.Name()] = number
	outcomes.Unlock()
	skipIfExcepted(t)
	t.Cleanup(func() {
		outcomes.Lock()
		defer outcomes.Unlock()
		passed, tested := outcomes.passed[number]
		outcomes.passed[number] = !t.Failed() && (passed || !tested)
	})
}

// writeTable writes the program's row into the table in file, and below the table why behaviours do
// not apply to the program. It replaces the program's old lines, or adds new ones at the end.
func writeTable(file, name string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	row, err := tableRow(name)
	if err != nil {
		return err
	}
	lines := strings.Split(string(content), "\n")
	if lines, err = renew(lines, "| implementation |", "| "+name+" |", []string{row}); err != nil {
		return err
	}
	if lines, err = renew(lines, "Left out, ", "- "+name+", ", exceptionNotes(name)); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o644)
}

// renew replaces the lines that begin with prefix by own. If there are none, it adds own at the end
// of the block of lines that begins with heading.
func renew(lines []string, heading, prefix string, own []string) ([]string, error) {
	hasPrefix := func(line string) bool { return strings.HasPrefix(line, prefix) }
	at := slices.IndexFunc(lines, hasPrefix)
	if at < 0 {
		at = slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, heading) })
		if at < 0 {
			return nil, fmt.Errorf("no line begins with %q", heading)
		}
		for at < len(lines) && lines[at] != "" {
			at++
		}
	}
	lines = slices.DeleteFunc(lines, hasPrefix)
	return slices.Insert(lines, at, own...), nil
}

// tableRow returns the program's row: each behaviour is proven, proven except for parts that do not
// apply, broken, not applicable, or not tested.
func tableRow(name string) (string, error) {
	version, err := suite.Kube.Discovery().ServerVersion()
	if err != nil {
		return "", err
	}
	cells := []string{name, time.Now().UTC().Format(time.DateOnly), version.GitVersion}
	for number := 1; number <= lastBehaviour; number++ {
		passed, tested := outcomes.passed[number]
		switch {
		case !tested && len(outcomes.leftOut[number]) > 0:
			cells = append(cells, "–")
		case !tested:
			cells = append(cells, "")
		case passed && len(outcomes.leftOut[number]) > 0:
			cells = append(cells, "(✓)")
		case passed:
			cells = append(cells, "✓")
		default:
			cells = append(cells, "✗")
		}
	}
	return fmt.Sprintf("| %s |", strings.Join(cells, " | ")), nil
}
