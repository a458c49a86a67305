package conformance

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/suite"
)

const (
	deployDir = "../../artifacts/deploy"
	// deployedName is the name of the deployed controller and of its namespace.
	deployedName = "sample-controller"
)

// watchedNamespace matches the places where the kustomization for one namespace names it.
var watchedNamespace = regexp.MustCompile(`(?m)(namespace: |--namespace=)default$`)

// watchOnly returns a function that puts the namespace into that kustomization.
func watchOnly(t *testing.T, namespace string) func(string) string {
	return func(manifest string) string {
		if n := len(watchedNamespace.FindAllString(manifest, -1)); n != 3 {
			t.Fatalf("%d places name the namespace, but the kustomization's comment says three", n)
		}
		return watchedNamespace.ReplaceAllString(manifest, "${1}"+namespace)
	}
}

// oldNamespace matches where a manifest still names the namespace from before the change.
var oldNamespace = regexp.MustCompile(
	`(?m)^.*(namespace: |serviceaccount:)` + deployedName + `\b.*$`)

// TestAnotherNamespaceByKustomize changes the namespace as docs/production.md says. A binding that
// stays behind would give the permissions to whoever can create the old namespace.
func TestAnotherNamespaceByKustomize(t *testing.T) {
	dir := t.TempDir()
	must.Do(t, os.CopyFS(dir, os.DirFS("../../artifacts")))
	write := func(path, text string) {
		must.Do(t, os.WriteFile(dir+path, []byte(text), 0o644))
	}
	check := func(path, what string) {
		manifest := suite.Kubectl(t, "", "kustomize", dir+path)
		if left := oldNamespace.FindAllString(manifest, -1); len(left) > 0 {
			t.Errorf("%s: still in the old namespace: %q", what, left)
		}
		if !strings.Contains(manifest, "namespace: foo-system") {
			t.Errorf("%s: nothing is in the new namespace", what)
		}
	}
	for _, resource := range []string{"deploy", "deploy/namespaced", "deploy/policy", "monitoring"} {
		write("/kustomization.yaml", "namespace: foo-system\nresources: ["+resource+"]\n")
		check("", resource)
	}
	for _, name := range []string{"kustomization.yaml", "rbac.yaml"} {
		path := "/deploy/base/" + name
		text := must.Get(os.ReadFile(dir + path))(t)
		write(path, strings.ReplaceAll(
			string(text), "namespace: "+deployedName, "namespace: foo-system"))
	}
	check("/deploy/namespaced", "a changed base")
}
