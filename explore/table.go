package explore

import (
	"flag"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

var update = flag.Bool("explore.update", false, "with -explore.every: write the table of errors into its page")

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

var errorTable = regexp.MustCompile(`(?s)(<!-- errors -->\n).*?(<!-- end of errors -->)`)

// Check compares the table with what was found: each outcome must be in its cell. With
// -explore.update, it writes the table anew.
func (e ErrorTable) Check(t *testing.T, outcomes []Outcome) {
	t.Helper()
	found := map[[2]string][]string{} // by answer and column
	for _, o := range outcomes {
		for _, c := range e.Columns {
			if !slices.Contains(c.Kinds, o.Request.Kind) {
				continue
			}
			at, word := [2]string{o.Answer.Name, c.Name}, e.word(o)
			if word != "" && (o.ForGood || word == "believed") && !slices.Contains(found[at], word) {
				found[at] = append(found[at], word)
				slices.Sort(found[at])
			}
		}
	}
	page, err := os.ReadFile(e.Page)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		changed := errorTable.ReplaceAll(page, []byte("${1}"+e.write(found)+"${2}"))
		if err := os.WriteFile(e.Page, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	table := string(errorTable.Find(page))
	for _, a := range Answers {
		for i, c := range e.Columns {
			said := e.said(table, a.Name, i)
			for _, word := range found[[2]string{a.Name, c.Name}] {
				if !strings.Contains(said, word) {
					t.Errorf("%s, %s: got %s, but %s says %q", a.Name, c.Name, word, e.Page, said)
				}
			}
		}
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

// write returns the table. Rows that say the same are one.
func (e ErrorTable) write(found map[[2]string][]string) string {
	var rows []string // the cells of each row, without its first
	names := map[string][]string{}
	for _, a := range Answers {
		row := ""
		for _, c := range e.Columns {
			row += " " + strings.Join(found[[2]string{a.Name, c.Name}], ", ") + " |"
		}
		if names[row] == nil {
			rows = append(rows, row)
		}
		names[row] = append(names[row], a.Name)
	}
	head, line := "| answer |", "|---|"
	for _, c := range e.Columns {
		head, line = head+" "+c.Name+" |", line+"---|"
	}
	text := head + "\n" + line + "\n"
	for _, row := range rows {
		text += "| " + strings.Join(names[row], "; ") + " |" + row + "\n"
	}
	return text
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
