package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/sample-controller/internal/testing/must"
)

func TestBadInputIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	thisRepository(t)
	folder := t.TempDir()
	full := filepath.Join(folder, "full")
	must.Do(t, os.MkdirAll(filepath.Join(full, "something"), 0o755))
	long := strings.Repeat("a", 64)
	tests := []struct{ flag, value, want string }{
		{"module", "", "--module is missing; write a path like"},
		{"module", "widgets", "write a domain and a path below it"},
		{"module", "acme.dev", "write a domain and a path below it"},
		{"module", "acme.dev/widgets.", "write a domain and a path below it"},
		{"module", "acme.dev/widgets/v2", "without a version and .git"},
		{"module", "github.com/acme/widgets.git", "without a version and .git"},
		{"group", "", "--group is missing; write a domain of yours"},
		{"group", "widgets", "with a dot; write a domain of yours"},
		{"group", "Widgets.acme.dev", "not a domain of small letters"},
		{"group", "k8s.io", "belongs to Kubernetes"},
		{"group", "widgets.kubernetes.io", "belongs to Kubernetes"},
		{"group", strings.Repeat("a.", 90) + "dev", "not a domain"},
		{"group", "type.acme.dev", "has a meaning in Go; write another, like types.acme.dev"},
		{"group", "3d.acme.dev", "must begin with a letter"},
		{"version", "1", "write a version as Kubernetes has them: v1alpha1, v1beta1 or v1"},
		{"kind", "", "--kind is missing; write the name of your resource"},
		{"kind", "widget", "write an upper-case letter"},
		{"kind", "W" + long[:50], "write an upper-case letter"},
		{"kind", "Svc", "Kubernetes has something of that name"},
		{"kind", "Foo", "that is the example of this repository"},
		{"plural", "Widgets", "write up to 63 lower-case letters and digits, like widgets"},
		{"plural", long, "write up to 63 lower-case letters"},
		{"plural", "widget", "is the kind itself; write another word"},
		{"plural", "nodes", "Kubernetes has something of that name"},
		{"from", "foo", "there is no such template; write --from website"},
		{"short", "po", "Kubernetes has something of that name"},
		{"name", "Widgets", "write a DNS label"},
		{"name", long, "write a DNS label"},
		{"name", "kubectl", "uses this word for something else; write another, like kubectl-contr"},
		{"nonsense", "x", "--help lists the flags"},
		{"dir", full, "is not empty; write a folder that does not exist"},
		{"dir", filepath.Join(folder, "missing", "x"), "make it first"},
		{"dir", "fork", "is in this repository; write a folder beside it"},
		{"dir", filepath.Join(folder, "a b"), "contains a space"},
		{"dir", "", "write one folder, after all flags"},
	}
	for _, test := range tests {
		t.Run(test.flag+"="+test.value, func(t *testing.T) {
			values := map[string]string{"module": "github.com/acme/widgets",
				"group": "widgets.acme.dev", "kind": "Widget", "dir": filepath.Join(folder, "new")}
			values[test.flag] = test.value
			err := run(context.Background(), ".", arguments(values), io.Discard)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("the error has more than one line: %v", err)
			}
		})
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 1 {
		t.Errorf("something was written: %v (%v)", entries, err)
	}
}

// kinds are words that the code uses for something else, and others. Each is refused with an error
// that says this, or gives a clean fork.
var kinds = []struct{ kind, refused string }{
	{"Deployment", "Kubernetes has"}, {"Event", "Kubernetes has"}, {"Node", "Kubernetes has"},
	{"Status", "Kubernetes has"}, {"Queue", "is a name in"},
	{"Controller", "is a name in"}, {"Type", "has a meaning in Go"},
	{"Func", "has a meaning in Go"}, {"Default", "has a meaning in Go"},
	{"String", "has a meaning in Go"}, {"List", "Kubernetes has"},
	{"Object", "is a name in"}, {"Spec", "is a name in"}, {"Any", "has a meaning in Go"},
	{"Error", "has a meaning in Go"}, {"Client", "is a name in"},
	{"Context", "is a name in"}, {"Test", "is a name in"}, {"T", "is the kind itself"},
	{"Condition", "is a name in"}, {"App", "is a name in"},
	{"Key", "is a name in"}, {"Lister", "is a name in"},
	{"FooBar", ""}, {"Food", ""}, {"Footprint", ""}, {"Widget", ""}, {"DNSRecord", ""}, {"News", ""},
	{"Policy", ""}, {"Bus", ""}, {"Series", ""}, {"Addon", ""}, {"Sample", ""}, {"Example", ""},
	{"Web", ""}, {"Tutorial", ""}, {"Ox", ""}, {"Gateway", ""}, {"WorkloadDeploymentList", ""},
	{"W" + strings.Repeat("idget", 9) + "s", ""}, // the longest kind
}

// thisRepository opens this repository. It skips the test if there are only its files, without git:
// those cannot be forked.
func thisRepository(t *testing.T) *repository {
	t.Helper()
	if _, err := output(t.Context(), ".", "git", "rev-parse"); err != nil {
		t.Skip("this is not a git repository")
	}
	return must.Get(openRepository(t.Context(), "."))(t)
}

func TestKindsAreRefusedOrWork(t *testing.T) {
	from := thisRepository(t)
	for _, test := range kinds {
		t.Run(test.kind, func(t *testing.T) {
			t.Parallel()
			n, err := checkNames(names{module: "github.com/acme/things", group: "things.acme.dev",
				version: "v1", kind: test.kind}, "")
			if err == nil {
				_, err = newFork(from, n, false)
			}
			if test.refused == "" && err != nil ||
				test.refused != "" && (err == nil || !strings.Contains(err.Error(), test.refused)) {
				t.Errorf("got %v, want %q", err, test.refused)
			}
		})
	}
}

// arguments returns the command line with these flags and this folder.
func arguments(values map[string]string) (args []string) {
	for _, name := range sortedKeys(values) {
		if name != "dir" {
			args = append(args, "--"+name, values[name])
		}
	}
	if values["dir"] != "" {
		args = append(args, values["dir"])
	}
	return args
}
