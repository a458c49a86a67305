package conformance

import (
	"flag"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// exception is the reason why some tests cannot apply to the program.
type exception struct {
	tests  *regexp.Regexp // matches their names
	reason string
}

var exceptions []exception

func init() {
	flag.Func("not-applicable", "`test=reason`: leave out tests, and parts of tests, that cannot "+
		"apply to the program; test is a regular expression for their names; "+
		"may be given more than once", func(value string) error {
		expression, reason, _ := strings.Cut(value, "=")
		if reason == "" {
			return fmt.Errorf("%q has no reason", value)
		}
		tests, err := regexp.Compile(expression)
		exceptions = append(exceptions, exception{tests, reason})
		return err
	})
}

// skipIfExcepted skips t if it cannot apply to the program, and records why.
func skipIfExcepted(t *testing.T) {
	t.Helper()
	for _, e := range exceptions {
		if !e.tests.MatchString(t.Name()) {
			continue
		}
		test, _, _ := strings.Cut(t.Name(), "/")
		outcomes.Lock()
		number := outcomes.numbers[test]
		if !slices.Contains(outcomes.leftOut[number], e) {
			outcomes.leftOut[number] = append(outcomes.leftOut[number], e)
		}
		outcomes.Unlock()
		t.Skip("not applicable: " + e.reason)
	}
}

// part runs a part of t that an exception can leave out.
func part(t *testing.T, name string, prove func(*testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		skipIfExcepted(t)
		prove(t)
	})
}

// exceptionNotes returns a line for each exception of each behaviour.
func exceptionNotes(program string) (notes []string) {
	for number := 1; number <= lastBehaviour; number++ {
		for _, e := range outcomes.leftOut[number] {
			notes = append(notes, fmt.Sprintf("- %s, %d, `%s`: %s", program, number, e.tests, e.reason))
		}
	}
	return notes
}
