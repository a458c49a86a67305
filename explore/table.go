package explore

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// ErrorTable is a table in a page: what the controller does about each error. It is between the lines
// <!-- errors --> and <!-- end of errors -->.
type ErrorTable struct {
	Page    string
	Columns []ErrorColumn
	// Reported is how long the controller waits after an error that it reports in a status.
	Reported time.Duration
}

// ErrorColumn is about some kinds of requests, such as list-foos. See Request.Kind.
type ErrorColumn struct {
	Name  string
	Kinds []string
}

// Check compares the table with what was found: each outcome must be in its cell.
func (e ErrorTable) Check(t *testing.T, outcomes []Outcome) {
	t.Helper()
	page, err := os.ReadFile(e.Page)
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "<!-- errors -->\n")
	table, _, _ = strings.Cut(table, "<!-- end of errors -->")
	missing := map[string]bool{}
	for _, o := range outcomes {
		word := e.word(o)
		if !o.ForGood && word != "believed" {
			continue
		}
		for i, c := range e.Columns {
			if !slices.Contains(c.Kinds, o.Request.Kind) {
				continue
			}
			if said := e.said(table, o.Answer.Name, i); !strings.Contains(said, word) {
				missing[fmt.Sprintf("%s, %s: got %s, but %s says %q",
					o.Answer.Name, c.Name, word, e.Page, said)] = true
			}
		}
	}
	for _, what := range slices.Sorted(maps.Keys(missing)) {
		t.Error(what)
	}
}

// word says what the controller did about an error, or "" if it had no need to do anything.
func (e ErrorTable) word(o Outcome) string {
	kind := o.Request.Kind
	switch {
	case o.Ends:
		return "ends"
	case kind == "create-events":
		return "ignored"
	case o.Problems && o.Repaired && apierrors.IsNotFound(o.Answer.Err):
		return "believed"
	case len(o.Waits) > 0 && slices.Max(o.Waits) < 5*time.Millisecond: // a queue waits longer
		return "" // an event came before the controller did something about the error
	case !strings.HasSuffix(kind, "-status") && slices.Contains(o.Waits, e.Reported):
		return "reported"
	case len(o.Waits) > 0 && o.Waits[0] < e.Reported:
		return "retried"
	case o.Answer.Happens && !strings.HasPrefix(kind, "get-"),
		apierrors.IsAlreadyExists(o.Answer.Err) && strings.HasPrefix(kind, "create-"):
		return "done"
	case apierrors.IsNotFound(o.Answer.Err):
		return "believed"
	case len(o.Waits) == 0 && !o.Problems:
		return "" // another event has made the request superfluous
	}
	return "unclear"
}

// said returns what the cell of an answer and a column says in the table.
func (e ErrorTable) said(table, answer string, column int) string {
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) == len(e.Columns)+3 &&
			slices.Contains(strings.Split(strings.TrimSpace(cells[1]), "; "), answer) {
			return cells[column+2]
		}
	}
	return ""
}
