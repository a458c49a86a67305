package conformance

import (
	"flag"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// exception says why tests cannot apply to the program.
type exception struct {
	tests  *regexp.Regexp // matches their names
	reason string
}

var exceptions []exception

func init() {
	flag.Func("not-applicable", "`test=reason`: leave out the tests, and the parts of tests, whose "+
		"names match that regular expression, because they cannot apply to the program; "+
		"may be given more than once", func(value string) error {
		expression, reason, _ := strings.Cut(value, "=")
		if reason == "" {
			return fmt.Errorf("no reason in %q", value)
		}
		tests, err := regexp.Compile(expression)
		exceptions = append(exceptions, exception{tests, reason})
		return err
	})
}

// skipIfExcepted skips t if it cannot apply to the program, and notes that.
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

// part runs a part of t that need not apply where the rest does.
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
