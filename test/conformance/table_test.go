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
const lastBehaviour = 22

var programID = flag.String("name", "this controller", "`name` of the program in the -table")

func init() {
	flag.Func("table", "Markdown `file` with the table to write the results to", func(file string) error {
		behaviour = note
		writeResults = func() error {
			if len(outcomes.passed) == 0 {
				return nil
			}
			return writeTable(file, *programID)
		}
		return flag.Set("test.run", ".") // all tests in this process, for the table
	})
}

// outcomes says which behaviours were tested, and whether all of their tests passed.
var outcomes = struct {
	sync.Mutex
	passed map[int]bool // by the number of the behaviour
}{passed: map[int]bool{}}

// note records that t proves the behaviour of that number, for the table.
func note(t *testing.T, number int) {
	t.Helper()
	t.Cleanup(func() {
		if t.Skipped() {
			return
		}
		outcomes.Lock()
		defer outcomes.Unlock()
		passed, tested := outcomes.passed[number]
		outcomes.passed[number] = !t.Failed() && (passed || !tested)
	})
}

// writeTable writes the program's row into the table in file, in place of its old one, or as the
// last one.
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
	begins := func(prefix string) int {
		return slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, prefix) })
	}
	if at := begins("| " + name + " |"); at >= 0 {
		lines[at] = row
	} else if at = begins("| implementation |"); at >= 0 {
		end := at + slices.Index(lines[at:], "")
		lines = slices.Insert(lines, end, row)
	} else {
		return fmt.Errorf("there is no table in %s", file)
	}
	return os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o644)
}

// tableRow returns the program's row: each behaviour is proven, broken, or not tested.
func tableRow(name string) (string, error) {
	version, err := suite.Kube.Discovery().ServerVersion()
	if err != nil {
		return "", err
	}
	cells := []string{name, time.Now().UTC().Format(time.DateOnly), version.GitVersion}
	for number := 1; number <= lastBehaviour; number++ {
		passed, tested := outcomes.passed[number]
		switch {
		case !tested:
			cells = append(cells, "")
		case passed:
			cells = append(cells, "✓")
		default:
			cells = append(cells, "✗")
		}
	}
	return fmt.Sprintf("| %s |", strings.Join(cells, " | ")), nil
}
