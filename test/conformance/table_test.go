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
)

// lastBehaviour is the highest number of a behaviour that is proven here. Number 20 is what
// test/faults proves.
const lastBehaviour = 19

var (
	tableFile = flag.String("table", "", "Markdown `file` in whose table to write what was found")
	programID = flag.String("name", "this controller", "`name` of the program in that table")
)

// outcomes says which behaviours were tested, and whether all of their tests passed.
var outcomes = struct {
	sync.Mutex
	passed  map[int]bool
	numbers map[string]int      // of the behaviour that a test proves, by the test's name
	leftOut map[int][]exception // by the number of the behaviour
}{passed: map[int]bool{}, numbers: map[string]int{}, leftOut: map[int][]exception{}}

// behaviour notes that t proves the behaviour of that number; docs/conformance.md lists them.
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

// writeTable writes the program's line of the table in file, and below the table why behaviours do
// not apply to it: in place of what is there about it, or as the last.
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

// renew puts own in place of the lines that begin with prefix, or, where there are none, at the
// end of the block of lines that begins with heading.
func renew(lines []string, heading, prefix string, own []string) ([]string, error) {
	hasPrefix := func(line string) bool { return strings.HasPrefix(line, prefix) }
	at := slices.IndexFunc(lines, hasPrefix)
	if at < 0 {
		at = slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, heading) })
		if at < 0 {
			return nil, fmt.Errorf("no line that begins with %q", heading)
		}
		for at < len(lines) && lines[at] != "" {
			at++
		}
	}
	lines = slices.DeleteFunc(lines, hasPrefix)
	return slices.Insert(lines, at, own...), nil
}

// tableRow returns the program's line: a behaviour is proven, proven but for what does not apply,
// broken, not applicable or was not tested.
func tableRow(name string) (string, error) {
	version, err := kubeClient.Discovery().ServerVersion()
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
