package check

import (
	"slices"
	"strings"
	"testing"
)

// step is a command in a console and its output. Later output of a program that goes on is a step
// without a command.
type step struct {
	command string // a line that begins with "$ " and those that begin with "> ", or ^C
	output  []string
	line    int // of the console, counted from 0
}

// steps takes a console block apart.
func steps(body []string) (all []step) {
	for i, line := range body {
		command, isCommand := strings.CutPrefix(line, "$ ")
		more, isMore := strings.CutPrefix(line, "> ")
		switch {
		case isCommand:
			all = append(all, step{command: command, line: i})
		case line == "^C":
			all = append(all, step{command: line, line: i})
		case isMore && len(all) > 0 && len(all[len(all)-1].output) == 0:
			all[len(all)-1].command += "\n" + more
		case len(all) == 0:
			all = append(all, step{output: []string{line}})
		default:
			all[len(all)-1].output = append(all[len(all)-1].output, line)
		}
	}
	return all
}

// body puts a console block together again.
func body(all []step) (lines []string) {
	for _, s := range all {
		switch s.command {
		case "":
		case "^C":
			lines = append(lines, s.command)
		default:
			lines = append(lines, "$ "+strings.ReplaceAll(s.command, "\n", "\n> "))
		}
		lines = append(lines, s.output...)
	}
	return lines
}

func TestTranscriptsAreTakenApartAndPutTogether(t *testing.T) {
	lines := []string{"still going on", "$ cat <<END", "> a", "> END", "a", "", "$ true", "^C", "bye"}
	all := steps(lines)

	if len(all) != 4 || all[0].command != "" || all[1].command != "cat <<END\na\nEND" ||
		!slices.Equal(all[1].output, []string{"a", ""}) || all[3].command != "^C" {
		t.Errorf("steps: got %+v, want 4: more output, cat, true and ^C", all)
	}
	if got := strings.Join(body(all), "\n"); got != strings.Join(lines, "\n") {
		t.Errorf("put together again: got\n%s\nwant\n%s", got, strings.Join(lines, "\n"))
	}
}
