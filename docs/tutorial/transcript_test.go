package tutorial

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// step is a command in a console and what it prints. Of a program that goes on, what it prints
// later is a step without a command.
type step struct {
	command string // a line that begins with "$ " and those that begin with "> ", or ^C
	output  []string
}

// steps takes a console block apart.
func steps(body []string) (all []step) {
	for _, line := range body {
		command, isCommand := strings.CutPrefix(line, "$ ")
		more, isMore := strings.CutPrefix(line, "> ")
		switch {
		case isCommand:
			all = append(all, step{command: command})
		case line == "^C":
			all = append(all, step{command: line})
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

// varying is what differs from run to run and from machine to machine.
var varying = []struct {
	pattern *regexp.Regexp
	same    string
}{
	{regexp.MustCompile(`^([IWE])\d{4} [\d:.]+ +\d+ `), "$1 "}, // time and process of a log line
	{regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`), "UID"},
	{regexp.MustCompile(`-[bcdf-hj-np-tv-z2-9]{8,10}(-[bcdf-hj-np-tv-z2-9]{5})?\b`), "-HASH"},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\dT[\d:.]+Z`), "TIME"},
	{regexp.MustCompile(`\b(\d+(\.\d+)?(ms|µs|[smhd]))+\b|\(cached\)|<invalid>`), "TIME"}, // an age
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "ADDRESS"},
	{regexp.MustCompile(`\b(created|configured|unchanged)$`), "applied"},
	{regexp.MustCompile(`\s+`), " "}, // the columns of a table
}

// normal returns a line of output without what varies.
func normal(line string) string {
	for _, v := range varying {
		line = v.pattern.ReplaceAllString(line, v.same)
	}
	return strings.TrimSpace(line)
}

// matches reports whether the output is the one that a page shows. A line "..." on the page stands
// for any number of lines.
func matches(shown, output []string) bool {
	if len(shown) == 0 {
		return len(output) == 0
	}
	if shown[0] == "..." {
		return matches(shown[1:], output) || len(output) > 0 && matches(shown, output[1:])
	}
	return len(output) > 0 && normal(shown[0]) == normal(output[0]) && matches(shown[1:], output[1:])
}

var lineNumber = regexp.MustCompile(`\.go:\d+`)

// refresh returns the output as a page should show it: where it differs from what is shown in line
// numbers only, it leaves out what the page leaves out.
func refresh(shown, output []string) (lines []string) {
	loose := func(line string) string { return lineNumber.ReplaceAllString(normal(line), ".go") }
	next := 0
	for _, line := range shown {
		if line == "..." {
			lines = append(lines, line)
			continue
		}
		for next < len(output) && loose(output[next]) != loose(line) {
			next++
		}
		if next == len(output) {
			return output
		}
		lines = append(lines, output[next])
		next++
	}
	if !matches(lines, output) {
		return output
	}
	return lines
}

// outputLines splits output, without the empty lines at its end.
func outputLines(output string) []string {
	output = strings.TrimRight(output, "\n")
	if output == "" {
		return nil
	}
	return strings.Split(output, "\n")
}

func TestTranscriptsAreTakenApartAndPutTogether(t *testing.T) {
	lines := []string{"still going on", "$ cat <<END", "> a", "> END", "a", "", "$ true", "^C", "bye"}
	all := steps(lines)

	if len(all) != 4 || all[0].command != "" || all[1].command != "cat <<END\na\nEND" ||
		!slices.Equal(all[1].output, []string{"a", ""}) || all[3].command != "^C" {
		t.Errorf("steps: got %q", all)
	}
	if got := strings.Join(body(all), "\n"); got != strings.Join(lines, "\n") {
		t.Errorf("put together again: got\n%s", got)
	}
}

func TestTranscriptsMatchButForWhatVaries(t *testing.T) {
	tests := []struct {
		name, shown, output string
		want                bool
	}{
		{"the same", "a\nb", "a\nb", true},
		{"another word", "a\nb", "a\nc", false},
		{"a line less", "a\nb", "a", false},
		{"a line more", "a", "a\nb", false},
		{"nothing shown", "", "a", false},
		{"an age", "web 1 12s", "web   1   3m5s", true},
		{"another number", "web 1 12s", "web 2 12s", false},
		{"a duration in a test's summary", "ok pkg 0.041s", "ok pkg (cached)", true},
		{"a failed test", "ok pkg 0.041s", "FAIL pkg 0.041s", false},
		{"the name of a Pod", "pod/web-7d9ffb885b-v6h2z 1/1", "pod/web-6c4c6b8bb9-xk2lp 1/1", true},
		{"the name of another Pod", "pod/web-7d9ffb885b-v6h2z", "pod/app-7d9ffb885b-v6h2z", false},
		{"the head of a log line", `I1121 08:59:15.444652   12987 writes.go:43] "Created"`,
			`I0102 10:00:00.000001       1 writes.go:43] "Created"`, true},
		{"another line of the code", `I1121 08:59:15.444652   12987 writes.go:43] "Created"`,
			`I1121 08:59:15.444652   12987 writes.go:44] "Created"`, false},
		{"an error in place of news", `I1121 08:59:15.444652   12987 writes.go:43] "Created"`,
			`E1121 08:59:15.444652   12987 writes.go:43] "Created"`, false},
		{"a CRD that is there already", "crd/foos created", "crd/foos unchanged", true},
		{"a wildcard in the middle", "a\n...\nd", "a\nb\nc\nd", true},
		{"a wildcard for nothing", "a\n...", "a", true},
		{"a wildcard does not hide the end", "a\n...\nd", "a\nb\nc", false},
	}
	for _, test := range tests {
		if got := matches(outputLines(test.shown), outputLines(test.output)); got != test.want {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
		}
	}
}

func TestRefreshedTranscriptsLeaveOutWhatThePageLeavesOut(t *testing.T) {
	shown := []string{"...", `I1121 08:59:15.444652 1 writes.go:43] "Created"`, "..."}
	output := []string{"noise", `I0102 10:00:00.000001 2 writes.go:44] "Created"`, "noise"}

	want := []string{"...", output[1], "..."}
	if got := refresh(shown, output); !slices.Equal(got, want) {
		t.Errorf("another line number: got %q, want %q", got, want)
	}
	other := []string{"noise", `I0102 10:00:00.000001 2 writes.go:44] "Updated"`}
	if got := refresh(shown, other); !slices.Equal(got, other) {
		t.Errorf("another message: got %q, want all of it", got)
	}
	more := []string{output[1], "more"}
	if got := refresh(shown[1:2], more); !slices.Equal(got, more) {
		t.Errorf("more than is shown: got %q, want all of it", got)
	}
}
