package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"example.com/sample-controller/explore"
	"example.com/sample-controller/internal/testing/must"
)

func init() { checkOutcomes = checkErrorTable }

// errorColumns are the kinds of requests that the columns of the table are about.
var errorColumns = [][]string{
	{"get-apis-samplecontroller.k8s.io-v1alpha1"},
	{"list-foos", "list-deployments"},
	{"watch-foos", "watch-deployments"},
	{"get-foos"},
	{"get-deployments"},
	{"create-deployments"},
	{"patch-deployments"},
	{"delete-deployments"},
	{"update-foos-status"},
	{"create-events"},
}

// checkErrorTable compares what the controller did about each error with the table in
// docs/reliability.md: each outcome must be in its cell. With -explore.every, each request gets each
// error.
func checkErrorTable(t *testing.T, outcomes []explore.Outcome) {
	t.Helper()
	_, table, _ := strings.Cut(string(must.Get(os.ReadFile("docs/reliability.md"))(t)), "<!-- errors -->\n")
	table, _, _ = strings.Cut(table, "<!-- end of errors -->")
	missing := map[string]bool{}
	for _, o := range outcomes {
		word := wordFor(o)
		if !o.ForGood && word != "believed" {
			continue
		}
		for i, kinds := range errorColumns {
			if !slices.Contains(kinds, o.Request.Kind) {
				continue
			}
			if said := errorCell(table, o.Answer.Name, i); !strings.Contains(said, word) {
				missing[fmt.Sprintf("%s, %s: got %s, but docs/reliability.md says %q",
					o.Answer.Name, o.Request.Kind, word, said)] = true
			}
		}
	}
	for _, what := range slices.Sorted(maps.Keys(missing)) {
		t.Error(what)
	}
}

// wordFor says what the controller did about an error, or "" if it had no need to do anything.
func wordFor(o explore.Outcome) string {
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
	case !strings.HasSuffix(kind, "-status") && slices.Contains(o.Waits, blockedRetryDelay):
		return "reported"
	case len(o.Waits) > 0 && o.Waits[0] < blockedRetryDelay:
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

// errorCell returns what the table says of an answer in a column.
func errorCell(table, answer string, column int) string {
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) == len(errorColumns)+3 &&
			slices.Contains(strings.Split(strings.TrimSpace(cells[1]), "; "), answer) {
			return cells[column+2]
		}
	}
	return ""
}
