package check

import (
	"regexp"
	"slices"
	"strings"
)

// varying lists what differs between runs and between machines.
var varying = []struct {
	pattern *regexp.Regexp
	same    string
}{
	{regexp.MustCompile(`^([IWE])\d{4} [\d:.]+ +\d+ `), "$1 "}, // time and process of a log line
	{regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`), "UID"},
	{regexp.MustCompile(`-[bcdf-hj-np-tv-z2-9]{6,10}(-[bcdf-hj-np-tv-z2-9]{5})?\b`), "-HASH"},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\dT[\d:.]+Z`), "TIME"},
	{regexp.MustCompile(`\b(\d+(\.\d+)?(ms|µs|[smhd]))+\b|\(cached\)|<invalid>`), "TIME"}, // an age
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "ADDRESS"},
	{regexp.MustCompile(`\bmilliseconds=\d+`), "milliseconds=N"}, // of a request
	{regexp.MustCompile(`\bresourceVersion="\d+"`), "resourceVersion=N"},
	{regexp.MustCompile(`^(\w+\{.*\}|\w+_seconds) [\d.e+-]+$`), "$1 N"}, // a metric
	{regexp.MustCompile(`\bgoroutine \d+\b`), "goroutine N"},            // of a stack
	{regexp.MustCompile(`\b0x[0-9a-f]+\b\??`), "0xN"},                   // in a stack
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

// unpromised matches lines that may come at any time, or never. Libraries write them from their own
// goroutines: a cache is filled, a feature is on, a request was slow. The go command writes them
// when it downloads a module before the first build.
var unpromised = regexp.MustCompile(
	`^I\d{4} [\d:.]+ +\d+ ((?:envvar|reflector|request|trace|warnings)\.go):\d+\] ` +
		`|^Trace\[\d+\]|^go: downloading `)

// promised returns the output without unpromised lines. If the page shows a line that a source file
// has logged, the lines from that file stay.
func promised(shown, output []string) []string {
	page := strings.Join(shown, "\n")
	return slices.DeleteFunc(slices.Clone(output), func(line string) bool {
		match := unpromised.FindStringSubmatch(line)
		return match != nil && (match[1] == "" || !strings.Contains(page, " "+match[1]+":"))
	})
}

// matches reports whether the output is what a page shows. A line "..." on the page stands for any
// number of lines.
func matches(shown, output []string) bool {
	return match(normal, shown, promised(shown, output), false)
}

// match reports whether output is what a page shows or, if incomplete, whether it can still become
// that. Lines are equal if same returns the same for both.
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

// verdict is the result of judging a program that goes on.
type verdict int

const (
	open  verdict = iota // it can still print what the page shows
	right                // it has printed what the page shows
	wrong                // it has printed something else
)

// judge compares what a program has printed so far with what a page shows, and returns how many of
// the lines the verdict covers. Other line numbers of the code are no reason to wait.
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

// loose returns a line of output without what varies, and without line numbers of the code.
func loose(line string) string { return lineNumber.ReplaceAllString(normal(line), ".go") }

// refresh returns the output as a page should show it. If it differs from the page only in line
// numbers, it keeps the "..." of the page.
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

// difference lists what a page shows and what was printed in its place, without the equal lines
// before and after.
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
