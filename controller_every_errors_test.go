package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

var update = flag.Bool("update", false, "with -every: write the table of errors into the page")

// answer is an error in place of an answer. If happens is true, the API server has done what the
// request asked for.
type answer struct {
	name    string
	err     error
	happens bool
}

var answers = func() []answer {
	of, kind, injected := schema.GroupResource{}, schema.GroupKind{}, errors.New("injected")
	cut := func(err error) error { return &url.Error{Op: "Any", URL: "https://injected", Err: err} }
	return []answer{
		{"400", apierrors.NewBadRequest("injected"), false},
		{"401", apierrors.NewUnauthorized("injected"), false},
		{"403", apierrors.NewForbidden(of, "", injected), false},
		{"404", apierrors.NewNotFound(of, ""), false},
		{"409 AlreadyExists", apierrors.NewAlreadyExists(of, ""), false},
		{"409 Conflict", apierrors.NewConflict(of, "", injected), false},
		{"410", apierrors.NewResourceExpired("injected"), false},
		{"413", apierrors.NewRequestEntityTooLargeError("injected"), false},
		{"422", apierrors.NewInvalid(kind, "", nil), false},
		{"429", apierrors.NewTooManyRequests("injected", 1), false},
		{"500", apierrors.NewInternalError(injected), false},
		{"503", apierrors.NewServiceUnavailable("injected"), false},
		{"504", apierrors.NewTimeoutError("injected", 1), false},
		{"cut before", cut(syscall.ECONNREFUSED), false},
		{"cut within", cut(syscall.ECONNRESET), false},
		{"cut after", cut(io.ErrUnexpectedEOF), true},
		{"timeout", cut(context.DeadlineExceeded), false},
		{"timeout after", cut(context.DeadlineExceeded), true},
	}
}()

// What the controller does about an error.
const (
	retried  = "retried"  // after 5 ms, 10 ms and so on
	reported = "reported" // in the status, and retried every 15 s
	ends     = "ends"     // the process, with a message
	done     = "done"     // the controller finds that there is nothing left to do
	ignored  = "ignored"  // nothing depends on it
	unclear  = "unclear"  // none of these
	believed = "believed" // something is gone: nothing is done until the next event, or a restart
)

// columns are the kinds of requests, as the table names them.
var columns = []struct{ name, kinds string }{
	{"list", "list-foos list-deployments"},
	{"watch", "watch-foos watch-deployments"},
	{"get Foo", "get-foos"},
	{"get Deployment", "get-deployments"},
	{"create", "create-deployments"},
	{"update", "update-deployments"},
	{"delete", "delete-deployments"},
	{"status", "update-foos-status"},
	{"Event", "create-events"},
}

// column returns the column of a request.
func column(t *testing.T, r request) string {
	t.Helper()
	for _, c := range columns {
		if slices.Contains(strings.Fields(c.kinds), r.kind) {
			return c.name
		}
	}
	t.Fatalf("%s: there is no column for this request", r.kind)
	return ""
}

// cell is a place in the table of errors.
type cell struct{ answer, column string }

// TestEveryError answers each request of each scenario with each error, once and for good: until
// ten minutes after the last step. What the controller does about it must be what the table in
// docs/reliability.md says. Without -every, it takes the first request of each kind.
func TestEveryError(t *testing.T) {
	found := map[cell]map[string]bool{}
	tried := map[string]bool{}
	inEveryScenario(t, func(t *testing.T, c *cases, s scenario, calm result) {
		for _, r := range calm.requests {
			if !*every && tried[r.kind] {
				continue
			}
			tried[r.kind] = true
			c.add("requests", 1)
			for _, a := range answers {
				for _, forGood := range []bool{false, true} {
					s.fail(t, c, r, a, forGood, found)
				}
			}
		}
	})
	compareErrors(t, found)
}

// fail answers a request with an error, and notes what the controller does about it.
func (s scenario) fail(
	t *testing.T, c *cases, r request, a answer, forGood bool, found map[cell]map[string]bool,
) {
	often, more := "once", time.Duration(0)
	if forGood {
		often, more = "for-good", 10*time.Minute
	}
	name := fmt.Sprintf("%s/%s/%s", r, strings.ReplaceAll(a.name, " ", "-"), often)
	c.run(t, name, true, func(t *testing.T) {
		tries := &tries{request: r, answer: a, forGood: forGood}
		got := s.run(t, func(w *world) { w.disturb, tries.world = tries.disturb, w }, more)
		outcome := tries.outcome(got)
		if len(tries.at) == 0 {
			c.miss(t)
		}
		if outcome == believed && got.repaired {
			got.problems = nil
		}
		expectNone(t, fmt.Sprintf("%s: %s", a.name, outcome), append(got.problems, got.unasked...))
		if forGood || outcome == believed {
			at := cell{a.name, column(t, r)}
			if found[at] == nil {
				found[at] = map[string]bool{}
			}
			found[at][outcome] = true
		}
	})
}

// tries answers a request with an error, and notes when the controller makes it again.
type tries struct {
	request request
	answer  answer
	forGood bool

	mu     sync.Mutex
	world  *world
	at     []time.Time
	slowly bool // made again after 15 s, when a status reported the failure
}

func (y *tries) disturb(_ *instance, r request, do func() error) error {
	y.mu.Lock()
	defer y.mu.Unlock()
	first := len(y.at) == 0
	if r.about() != y.request.about() || first && r.String() != y.request.String() {
		return do()
	}
	if !first && r.at.Sub(y.at[len(y.at)-1]) == blockedRetryDelay {
		y.slowly = slices.ContainsFunc(y.world.foos(), func(foo *v1alpha1.Foo) bool {
			is := ready(foo)
			return is == "False "+reasonRejected || is == "False "+reasonNameTaken
		})
	}
	y.at = append(y.at, r.at)
	if !first && !y.forGood {
		return do()
	}
	if y.answer.happens {
		_ = do()
	}
	return y.answer.err
}

// outcome returns what the controller did about the error.
func (y *tries) outcome(r result) string {
	kind, err := y.request.kind, y.answer.err
	switch {
	case len(r.ends) > 0:
		return ends
	case kind == "create-events":
		return ignored
	case len(r.problems) > 0 && r.repaired && apierrors.IsNotFound(err):
		return believed
	case y.slowly && kind != "update-foos-status":
		return reported
	case len(y.at) > 1 && y.at[1].Sub(y.at[0]) < blockedRetryDelay:
		return retried
	case y.answer.happens, apierrors.IsAlreadyExists(err):
		return done
	case apierrors.IsNotFound(err):
		return believed
	}
	return unclear
}

var errorTable = regexp.MustCompile(
	`(?s)(<!-- errors: go test . -run TestEveryError -every -update -->\n).*?(<!-- end of errors -->)`)

// compareErrors compares what was found with the table in the page.
func compareErrors(t *testing.T, found map[cell]map[string]bool) {
	t.Helper()
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
	for _, a := range answers {
		for _, c := range columns {
			at := cell{a.name, c.name}
			for outcome := range found[at] {
				if !strings.Contains(said[at], outcome) {
					t.Errorf("%s, %s: got %s, but %s says %q", a.name, c.name, outcome, path, said[at])
				}
			}
		}
	}
}

// writeErrors returns the table. Rows that say the same are one.
func writeErrors(found map[cell]map[string]bool) string {
	var rows []string // the cells of each row, without its first
	names := map[string][]string{}
	for _, a := range answers {
		row := ""
		for _, c := range columns {
			row += " " + strings.Join(slices.Sorted(maps.Keys(found[cell{a.name, c.name}])), ", ") + " |"
		}
		if names[row] == nil {
			rows = append(rows, row)
		}
		names[row] = append(names[row], a.name)
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

// readErrors returns what the cells of the table say.
func readErrors(table string) map[cell]string {
	said := map[cell]string{}
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != len(columns)+3 {
			continue
		}
		for answer := range strings.SplitSeq(cells[1], ";") {
			for i, c := range columns {
				said[cell{strings.TrimSpace(answer), c.name}] = cells[i+2]
			}
		}
	}
	return said
}
