package conformance

import (
	"errors"
	"flag"
	"fmt"
	"os"
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
	passed map[int]bool
}{passed: map[int]bool{}}

// behaviour notes that t proves the behaviour of that number; docs/conformance.md lists them.
func behaviour(t *testing.T, number int) {
	t.Helper()
	t.Cleanup(func() {
		outcomes.Lock()
		defer outcomes.Unlock()
		passed, tested := outcomes.passed[number]
		outcomes.passed[number] = !t.Failed() && (passed || !tested)
	})
}

// writeTable writes the program's line of the table in file: in place of the one that it has, or
// as a new one at the end of the table.
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
	end := -1
	for i, line := range lines {
		if strings.HasPrefix(line, "| "+name+" |") {
			lines[i] = row
			return os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o644)
		}
		if strings.HasPrefix(line, "| implementation |") || end == i && strings.HasPrefix(line, "|") {
			end = i + 1
		}
	}
	if end < 0 {
		return errors.New("no table that begins with \"| implementation |\"")
	}
	lines = append(lines[:end], append([]string{row}, lines[end:]...)...)
	return os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o644)
}

// tableRow returns the program's line: a behaviour is proven, broken or was not tested.
func tableRow(name string) (string, error) {
	version, err := kubeClient.Discovery().ServerVersion()
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
