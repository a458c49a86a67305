package tutorial

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

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

// unpromised are the log lines that libraries write when they come to it, from goroutines of their
// own: that a cache is filled, a feature is on, a request was slow. Nobody promises when, or if. And
// a machine that has not built the program yet may have to download parts of it.
var unpromised = regexp.MustCompile(
	`^I\d{4} [\d:.]+ +\d+ ((?:envvar|reflector|request|trace|warnings)\.go):\d+\] ` +
		`|^Trace\[\d+\]|^go: downloading `)

// promised returns the output without the lines that nobody promises, unless the page shows one of
// the same file.
func promised(shown, output []string) []string {
	page := strings.Join(shown, "\n")
	return slices.DeleteFunc(slices.Clone(output), func(line string) bool {
		match := unpromised.FindStringSubmatch(line)
		return match != nil && (match[1] == "" || !strings.Contains(page, " "+match[1]+":"))
	})
}

// matches reports whether the output is the one that a page shows. A line "..." on the page stands
// for any number of lines.
func matches(shown, output []string) bool {
	return match(normal, shown, promised(shown, output), false)
}

// match reports whether output is, or if it is not complete can become, what a page shows, seen
// through a function that makes equal what does not matter.
func match(same func(string) string, shown, output []string, incomplete bool) bool {
	switch {
	case len(output) == 0 && incomplete:
		return true
	case len(shown) == 0:
		return len(output) == 0
	case shown[0] == "...":
		return match(same, shown[1:], output, incomplete) ||
			len(output) > 0 && match(same, shown, output[1:], incomplete)
	}
	return len(output) > 0 && same(shown[0]) == same(output[0]) &&
		match(same, shown[1:], output[1:], incomplete)
}

// verdict is what can be said of a program that goes on.
type verdict int

const (
	open  verdict = iota // it can still print what the page shows
	right                // it has done so
	wrong                // it has printed something else
)

// judge compares what a program has printed so far with what a page shows, and returns with how
// many of the lines it is right. That a line of code has another number is no reason to wait.
func judge(shown, lines []string) (int, verdict) {
	for n := range len(lines) + 1 {
		if match(loose, shown, promised(shown, lines[:n]), false) {
			return n, right
		}
	}
	if match(loose, shown, promised(shown, lines), true) {
		return 0, open
	}
	return len(lines), wrong
}

var lineNumber = regexp.MustCompile(`\.go:\d+`)

// loose returns a line of output without what varies, and without numbers of lines of the code.
func loose(line string) string { return lineNumber.ReplaceAllString(normal(line), ".go") }

// refresh returns the output as a page should show it: where it differs from what is shown in line
// numbers only, it leaves out what the page leaves out.
func refresh(shown, output []string) (lines []string) {
	output = promised(shown, output)
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

// difference lists what a page shows and what was printed in its place, without what is the same
// before and after it.
func difference(shown, output []string) string {
	output = promised(shown, output)
	same := func(a, b string) bool { return a != "..." && normal(a) == normal(b) }
	for len(shown) > 0 && len(output) > 0 && same(shown[0], output[0]) {
		shown, output = shown[1:], output[1:]
	}
	for len(shown) > 0 && len(output) > 0 && same(shown[len(shown)-1], output[len(output)-1]) {
		shown, output = shown[:len(shown)-1], output[:len(output)-1]
	}
	lines := []string{"  - what the page shows, + what was printed"}
	for _, line := range shown {
		lines = append(lines, "  - "+line)
	}
	for _, line := range output {
		lines = append(lines, "  + "+line)
	}
	return strings.Join(lines, "\n")
}

// outputLines splits output, without the empty lines at its end.
func outputLines(output string) []string {
	output = strings.TrimRight(output, "\n")
	if output == "" {
		return nil
	}
	return strings.Split(output, "\n")
}

// populated is what client-go logs when a cache is filled.
const populated = `I1121 09:33:19.496329   23301 reflector.go:507] "Caches populated" type="Foo"` +
	"\n"

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
		{"a line of a library before", `I1121 08:59:15.444652 1 controller.go:9] "Starting"`,
			populated + `I1121 08:59:15.444652 1 controller.go:9] "Starting"`, true},
		{"a line of a library after", `I1121 08:59:15.444652 1 controller.go:9] "Starting"`,
			`I1121 08:59:15.444652 1 controller.go:9] "Starting"` + "\n" + populated, true},
		{"a line of a library that the page shows", strings.TrimSpace(populated), populated, true},
		{"a line of a library in place of the one that the page shows",
			strings.TrimSpace(populated), strings.Replace(populated, "Foo", "Bar", 1), false},
		{"a line of a library that the page shows is missing", strings.TrimSpace(populated), "", false},
		{"an error of a library", "", "E" + populated[1:], false},
		{"a download", "ok pkg 0.041s", "go: downloading golang.org/x/mod v0.37.0\nok pkg 1s", true},
		{"an error of go", "ok pkg 0.041s", "go: no such tool\nok pkg 1s", false},
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

func TestProgramsAreJudgedByWhatTheyHavePrintedSoFar(t *testing.T) {
	const renumbered = `I1121 08:59:15.444652 1 writes.go:44] "Created"`
	tests := []struct {
		name, shown, output string
		n                   int
		want                verdict
	}{
		{"nothing yet", "a\nb", "", 0, open},
		{"the beginning", "a\nb", "a", 0, open},
		{"all", "a\nb", "a\nb", 2, right},
		{"all, and what belongs to the next step", "a\nb", "a\nb\nc", 2, right},
		{"something else", "a\nb", "c", 1, wrong},
		{"something else in the end", "a\nb", "a\nc", 2, wrong},
		{"nothing shown", "", "", 0, right},
		{"nothing shown, and what belongs to the next step", "", "a", 0, right},
		{"what a wildcard stands for", "...\nb", "a", 0, open},
		{"the end of a wildcard", "...\nb", "a\nb\nc", 2, right},
		{"a wildcard in the end", "a\n...", "a\nb", 1, right},
		{"another line of the code", strings.Replace(renumbered, ":44", ":43", 1), renumbered, 1, right},
		{"a line of a library", "a", populated, 0, open},
		{"a line of a library before", "a", populated + "a", 2, right},
	}
	for _, test := range tests {
		n, got := judge(outputLines(test.shown), outputLines(test.output))
		if n != test.n || got != test.want {
			t.Errorf("%s: got %d lines, verdict %d, want %d, %d", test.name, n, got, test.n, test.want)
		}
	}
}

func TestDifferencesAreShownInAFewLines(t *testing.T) {
	shown := []string{"a", "b", "c", "d"}
	got := difference(shown, []string{"a", "x", "y", "d"})

	want := "  - what the page shows, + what was printed\n  - b\n  - c\n  + x\n  + y"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
