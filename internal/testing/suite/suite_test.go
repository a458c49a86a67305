package suite

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/suite/audit"
)

func TestPermissionAllowsOnlyWhatItNames(t *testing.T) {
	request := audit.Request{Verb: "update", RequestURI: "/apis/example.com/v1/namespaces/a/things/x"}
	request.ObjectRef.Resource, request.ObjectRef.Subresource = "things", "status"
	request.ObjectRef.Namespace, request.ObjectRef.Name = "a", "x"
	permission := func(change func(*Permission)) Permission {
		p := Permission{Group: "example.com", Resource: "things/status", Verb: "update"}
		change(&p)
		return p
	}
	for name, test := range map[string]struct {
		change func(*Permission)
		want   bool
	}{
		"in all namespaces":  {func(*Permission) {}, true},
		"in this namespace":  {func(p *Permission) { p.Namespace = "a" }, true},
		"in another":         {func(p *Permission) { p.Namespace = "b" }, false},
		"by this name":       {func(p *Permission) { p.Names = []string{"x"} }, true},
		"by another":         {func(p *Permission) { p.Names = []string{"y"} }, false},
		"for another verb":   {func(p *Permission) { p.Verb = "patch" }, false},
		"for another group":  {func(p *Permission) { p.Group = "" }, false},
		"without the status": {func(p *Permission) { p.Resource = "things" }, false},
	} {
		if got := permission(test.change).allows(request); got != test.want {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}

func TestClusterWithoutAnAuditLogIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig.yaml")
	must.Do(t, os.WriteFile(file, []byte(`{current-context: a, contexts: [{name: a, context: {cluster: a}}],
		clusters: [{name: a, cluster: {server: "https://127.0.0.1"}}]}`), 0o600))
	t.Setenv("KUBECONFIG", file)
	if err := connect(); err == nil || !strings.Contains(err.Error(), "no cluster for tests") {
		t.Errorf("got %v, want that it is no cluster for tests", err)
	}
}
