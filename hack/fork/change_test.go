package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"example.com/sample-controller/internal/testing/must"
)

// change is what somebody made of a fork. TestForkedRepositoriesWork tests the result.
const change = "testdata/httpcheck.patch"

// checks says how that fork was made.
func checks() map[string]string {
	return map[string]string{"kind": "HTTPCheck", "module": "github.com/acme/checks",
		"group": "checks.acme.dev", "from": "website"}
}

// applyChange applies the change to a fork. It returns the lines added and removed in each file.
func applyChange(t *testing.T, folder string) (numstat string) {
	t.Helper()
	patch := must.Get(filepath.Abs(change))(t)
	at(t, folder, "git apply --unidiff-zero "+patch)
	return at(t, folder, "git apply --numstat --unidiff-zero "+patch)
}

// The change fits, NEXT.md leads to all that it touches, and the page says how much that is.
func TestAnotherMeaningIsASmallChange(t *testing.T) {
	from := must.Get(thisRepository(t).template("website"))(t)
	out := must.Get(omit(from, nil))(t)
	values := checks()
	n, err := checkNames(names{module: values["module"], group: values["group"], version: "v1alpha1",
		kind: values["kind"]}, "")
	must.Do(t, err)
	f := must.Get(newFork(from, from.newNames(n), out))(t)
	folder := t.TempDir()
	must.Do(t, f.write(t.Context(), folder))
	files, added, removed := 0, 0, 0
	for line := range strings.Lines(applyChange(t, folder)) {
		fields := strings.Fields(line)
		plus, _ := strconv.Atoi(fields[0])
		minus, _ := strconv.Atoi(fields[1])
		files, added, removed = files+1, added+plus, removed+minus
		if !strings.Contains(f.files["NEXT.md"], "| `"+fields[2]+"` |") {
			t.Errorf("NEXT.md does not name %s", fields[2])
		}
		if _, err := os.Stat(filepath.Join(folder, fields[2])); err != nil {
			t.Errorf("the change deletes a file: %v", err)
		}
	}
	touched := fmt.Sprintf("%d files, +%d −%d lines", files, added, removed)
	t.Log("another meaning touches", touched)
	page, err := os.ReadFile("../../docs/forking.md")
	if err != nil || !strings.Contains(string(page), touched) || files > 25 {
		t.Errorf("the change touches %s; docs/forking.md must say this, and at most 25 files (%v)",
			touched, err)
	}
}
