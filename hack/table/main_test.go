package main

import (
	"slices"
	"strings"
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

| 5 | of another table | a |

The end.`

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

func TestRowIsRenewedOrAdded(t *testing.T) {
	for name, want := range map[string]string{
		"ours":   "|---|---|\n| ours | now |\n\n| 5 | of another table | a |\n\nThe end.",
		"theirs": "|---|---|\n| ours | then |\n| theirs | now |\n\n| 5 | of another table | a |\n\nThe end.",
	} {
		if got, err := withRow(text, []string{name, "now"}); err != nil || !strings.HasSuffix(got, want) {
			t.Errorf("%s: got %s (error %v)", name, got, err)
		}
	}
}
