package main

import (
	"strings"
	"testing"

	"example.com/sample-controller/internal/testing/must"
)

// kinds are words that the code uses for something else, and others. Each is refused with an error
// that says this, or it works: with -fork-all, those kinds are forked.
var kinds = []struct{ kind, refused string }{
	{"Deployment", "kubectl knows"}, {"Event", "kubectl knows"}, {"Node", "kubectl knows"},
	{"Status", "would become Status"}, {"Queue", "would become queue"},
	{"Controller", "would become Controller"}, {"Type", "would become Type"},
	{"Func", "is a keyword of Go"}, {"Default", "is a keyword of Go"},
	{"String", "would become String"}, {"List", "would become List"},
	{"Object", "would become Object"}, {"Spec", "would become Spec"}, {"Any", "is predeclared"},
	{"Error", "would become Error"}, {"Client", "would become Client"},
	{"Context", "would become Context"}, {"Test", "would become Test"}, {"T", "is the kind itself"},
	{"Condition", "would become Condition"}, {"App", "would become Apps"},
	{"Key", "would become Key"}, {"Lister", "would become Lister"},
	{"Foo", ""}, {"FooBar", ""}, {"Food", ""}, {"Footprint", ""}, {"Widget", ""}, {"DNSRecord", ""},
	{"Policy", ""}, {"Bus", ""}, {"Series", ""}, {"Addon", ""}, {"Sample", ""}, {"Example", ""},
	{"Web", ""}, {"Tutorial", ""}, {"Ox", ""}, {"Gateway", ""}, {"WorkloadDeploymentList", ""},
	{"W" + strings.Repeat("idget", 9) + "size", ""}, // the longest kind
}

// thisRepository opens this repository. It skips the test if there are only its files, without git:
// those cannot be forked.
func thisRepository(t *testing.T) *repository {
	t.Helper()
	if _, err := output(t.Context(), ".", "git", "rev-parse"); err != nil {
		t.Skip("this is not a git repository")
	}
	r := must.Get(openRepository(t.Context(), "."))(t)
	return r
}

func TestKindsAreRefusedOrWork(t *testing.T) {
	from := thisRepository(t)
	for _, test := range kinds {
		t.Run(test.kind, func(t *testing.T) {
			n, err := checkNames(names{module: "github.com/acme/things", group: "things.acme.dev",
				version: "v1", kind: test.kind}, "")
			if err == nil {
				_, err = newFork(from, n, nothing(t))
			}
			if test.refused == "" && err != nil ||
				test.refused != "" && (err == nil || !strings.Contains(err.Error(), test.refused)) {
				t.Errorf("got %v, want %q", err, test.refused)
			}
		})
	}
}
