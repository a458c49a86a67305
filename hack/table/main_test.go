package main

import (
	"slices"
	"testing"
)

const text = `| # | behaviour | tests |
|---|---|---|
| 1 | one | ` + "`TestA`, `TestB`" + ` |
| 2 | two | ` + "`TestC`" + ` |
| 3 | three | ` + "`test/faults`" + ` |
| 4 | four | ` + "`TestD`" + ` |

| implementation | date |
|---|---|
| ours | then |

| 5 | of another table | a |`

func TestOutcomesOfBehaviours(t *testing.T) {
	for printed, want := range map[string][]string{
		"--- PASS: TestA (1s)\n--- PASS: TestB (1s)\n":            {"✓", "", "", ""},
		"--- FAIL: TestA (1s)\n--- PASS: TestB (1s)\n":            {"✗", "", "", ""},
		"--- PASS: TestC (1s)\n    --- SKIP: TestC/part (0s)\n":   {"", "", "", ""},
		"--- PASS: TestD (1s)\n    --- PASS: TestD/part (0s)\nok": {"", "", "", "✓"},
	} {
		if got := outcomes(text, printed); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", printed, got, want)
		}
	}
}
