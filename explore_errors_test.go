package main

import (
	"flag"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"example.com/sample-controller/explore"
)

var update = flag.Bool("update", false, "with -explore.every: write the table of errors into the page")

// What the controller does about each error must be what the table in docs/reliability.md says.
func init() { checkOutcomes = compareErrors }

// columns are the kinds of requests, as the table of errors names them.
var columns = []struct{ name, kinds string }{
	{"discovery", "get-apis-samplecontroller.k8s.io-v1alpha1"},
	{"list", "list-foos list-deployments"},
	{"watch", "watch-foos watch-deployments"},
	{"get Foo", "get-foos"},
	{"get Deployment", "get-deployments"},
	{"create", "create-deployments"},
	{"patch", "patch-deployments"},
	{"delete", "delete-deployments"},
	{"status", "update-foos-status"},
	{"Event", "create-events"},
}

// did says in a word what the controller did about an error.
func did(o explore.Outcome) string {
	isRead := strings.HasPrefix(o.Request.Kind, "get-")
	switch {
	case o.Ends:
		return "ends"
	case o.Request.Kind == "create-events":
		return "ignored"
	case o.Problems && o.Repaired && apierrors.IsNotFound(o.Answer.Err):
		return "believed"
	case len(o.Waits) > 0 && slices.Max(o.Waits) < 5*time.Millisecond: // the queue waits longer
		return "" // an event came before the controller did something about the error
	case o.Request.Kind != "update-foos-status" && slices.Contains(o.Waits, blockedRetryDelay):
		return "reported"
	case len(o.Waits) > 0 && o.Waits[0] < blockedRetryDelay:
		return "retried"
	case o.Answer.Happens && !isRead,
		apierrors.IsAlreadyExists(o.Answer.Err) && o.Request.Kind == "create-deployments":
		return "done"
	case apierrors.IsNotFound(o.Answer.Err):
		return "believed"
	case len(o.Waits) == 0 && !o.Problems:
		return "" // another event has made the request superfluous
	}
	return "unclear"
}

var errorTable = regexp.MustCompile(
	`(?s)(<!-- errors: go test . -run TestExplore -explore.every -update -->\n).*?(<!-- end of errors -->)`)

// compareErrors compares what was found with the table in the page.
func compareErrors(t *testing.T, outcomes []explore.Outcome) {
	t.Helper()
	found := map[[2]string][]string{} // by answer and column
	for _, o := range outcomes {
		for _, c := range columns {
			if !slices.Contains(strings.Fields(c.kinds), o.Request.Kind) {
				continue
			}
			at, word := [2]string{o.Answer.Name, c.name}, did(o)
			if word != "" && (o.ForGood || word == "believed") && !slices.Contains(found[at], word) {
				found[at] = append(found[at], word)
				slices.Sort(found[at])
			}
		}
	}
	const path = "docs/reliability.md"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		changed := errorTable.ReplaceAll(page, []byte("${1}"+writeErrors(found)+"${2}"))
		if err := os.WriteFile(path, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	said := readErrors(string(errorTable.Find(page)))
	for at, words := range found {
		for _, word := range words {
			if !strings.Contains(said[at], word) {
				t.Errorf("%s, %s: got %s, but %s says %q", at[0], at[1], word, path, said[at])
			}
		}
	}
}

// writeErrors returns the table. Rows that say the same are one.
func writeErrors(found map[[2]string][]string) string {
	var rows []string // the cells of each row, without its first
	names := map[string][]string{}
	for _, a := range explore.Answers {
		row := ""
		for _, c := range columns {
			row += " " + strings.Join(found[[2]string{a.Name, c.name}], ", ") + " |"
		}
		if names[row] == nil {
			rows = append(rows, row)
		}
		names[row] = append(names[row], a.Name)
	}
	head, line := "| answer |", "|---|"
	for _, c := range columns {
		head, line = head+" "+c.name+" |", line+"---|"
	}
	text := head + "\n" + line + "\n"
	for _, row := range rows {
		text += "| " + strings.Join(names[row], "; ") + " |" + row + "\n"
	}
	return text
}

// readErrors returns what the cells of the table say, by answer and column.
func readErrors(table string) map[[2]string]string {
	said := map[[2]string]string{}
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != len(columns)+3 {
			continue
		}
		for answer := range strings.SplitSeq(cells[1], ";") {
			for i, c := range columns {
				said[[2]string{strings.TrimSpace(answer), c.name}] = cells[i+2]
			}
		}
	}
	return said
}
