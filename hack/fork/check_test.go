package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestBadInputIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	thisRepository(t)
	folder := t.TempDir()
	full := filepath.Join(folder, "full")
	if err := os.MkdirAll(filepath.Join(full, "something"), 0o755); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("a", 64)
	tests := []struct{ flag, value, want string }{
		{"module", "", "--module is missing; write a path like"},
		{"module", "widgets", "the first element must be a domain"},
		{"module", "acme.dev", "it needs a path after the domain"},
		{"module", "acme.dev/a b", `"a b" cannot be an element of a module path`},
		{"module", "acme.dev//b", `"" cannot be an element`},
		{"module", "https://acme.dev/b", "the first element must be a domain"},
		{"module", "acme.dev/widgets/v2", "a new module begins at v0"},
		{"group", "", "--group is missing; write a domain of yours"},
		{"group", "widgets", "a group needs a dot; write a domain of yours"},
		{"group", "Widgets.acme.dev", `"Widgets" is not a DNS label`},
		{"group", "widgets..dev", `"" is not a DNS label`},
		{"module", "github.com/acme/widgets.git", "a module has no .git"},
		{"group", "k8s.io", "it is a group of Kubernetes itself"},
		{"group", "kubernetes.io", "it is a group of Kubernetes itself"},
		{"group", "events.k8s.io", "it is a group of Kubernetes itself"},
		{"group", "type.acme.dev", "has a meaning in Go; write another, like types.acme.dev"},
		{"group", "string.acme.dev", "has a meaning in Go"},
		{"group", "main.acme.dev", "has a meaning in Go"},
		{"group", "3d.acme.dev", "must begin with a letter"},
		{"version", "1", "write a version as Kubernetes has them: v1alpha1, v1beta1 or v1"},
		{"version", "v1alpha", "write a version"},
		{"version", "V1", "write a version"},
		{"kind", "", "--kind is missing; write the name of your resource"},
		{"kind", "widget", "write an upper-case letter"},
		{"kind", "Wid-get", "write an upper-case letter"},
		{"kind", "Größe", "write an upper-case letter"},
		{"kind", "W" + long[:50], "write an upper-case letter"},
		{"kind", "Deployment", "kubectl knows a resource of Kubernetes by that name; choose another"},
		{"kind", "Svc", "kubectl knows a resource of Kubernetes by that name"},
		{"kind", "Foo", "that is the example of this repository"},
		{"kind", "Func", "foo in clients.go would become func, which is a keyword of Go; choose another"},
		{"plural", "Widgets", "write up to 63 lower-case letters and digits, like widgets"},
		{"plural", "my-widgets", "write up to 63 lower-case letters"},
		{"plural", long, "write up to 63 lower-case letters"},
		{"plural", "widget", "is the kind itself; write another word"},
		{"plural", "nodes", "kubectl knows a resource of Kubernetes"},
		{"with", "fault", "there is no such part; write all, or some of faults,fuzz,"},
		{"from", "foo", "there is no such template; write --from website"},
		{"article", "the", "write a or an"},
		{"short", "Wi", "write some lower-case letters"},
		{"short", "po", "kubectl knows a resource of Kubernetes"},
		{"name", "Widgets", "write a DNS label"},
		{"name", "wid.gets", "write a DNS label"},
		{"name", long, "write a DNS label"},
		{"name", "kubectl", "uses this word for something else; write another, like kubectl-contr"},
		{"name", "etcd", "uses this word for something else"},
		{"name", "stamp", "uses this word for something else"},
		{"nonsense", "x", "--help lists the flags"},
		{"dir", full, "is not empty; write a folder that does not exist"},
		{"dir", filepath.Join(folder, "missing", "x"), "make it first"},
		{"dir", "../../fork", "is in this repository; write a folder beside it"},
		{"dir", filepath.Join(folder, "a b"), "contains a space"},
		{"dir", "", "the folder to write is missing"},
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
