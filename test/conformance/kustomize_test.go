package conformance

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/suite"
)

// oldNamespace matches where a manifest still names the namespace from before the change.
var oldNamespace = regexp.MustCompile(
	`(?m)^.*(namespace: |serviceaccount:)` + deployedName + `\b.*$`)

// kustomized returns the artifacts as that kustomization changes them.
func kustomized(t *testing.T, kustomization string) (manifest string) {
	t.Helper()
	dir := t.TempDir()
	must.Do(t, os.CopyFS(dir, os.DirFS("../../artifacts")))
	must.Do(t, os.WriteFile(dir+"/kustomization.yaml", []byte(kustomization), 0o644))
	return suite.Kubectl(t, "", "kustomize", dir)
}

// TestAnotherNamespaceByKustomize changes the namespace as a user would. A binding that
// stays behind would give the permissions to anybody who can create the old namespace.
func TestAnotherNamespaceByKustomize(t *testing.T) {
	check := func(what, manifest string) {
		if left := oldNamespace.FindAllString(manifest, -1); len(left) > 0 {
			t.Errorf("%s: still in the old namespace: %q", what, left)
		}
		if !strings.Contains(manifest, "namespace: foo-system") {
			t.Errorf("%s: nothing is in the new namespace", what)
		}
	}
	for _, resource := range []string{"deploy", "deploy/namespaced", "monitoring"} {
		check(resource, kustomized(t, "namespace: foo-system\nresources: ["+resource+"]\n"))
	}
	dir := t.TempDir()
	must.Do(t, os.CopyFS(dir, os.DirFS("../../artifacts")))
	for _, name := range []string{"kustomization.yaml", "rbac.yaml"} {
		path := dir + "/deploy/base/" + name
		text := strings.ReplaceAll(string(must.Get(os.ReadFile(path))(t)),
			"namespace: "+deployedName, "namespace: foo-system")
		must.Do(t, os.WriteFile(path, []byte(text), 0o644))
	}
	check("a changed base", suite.Kubectl(t, "", "kustomize", dir+"/deploy/namespaced"))
}

func TestLeaseOfTheDeployedController(t *testing.T) {
	suite.Deploy(t, deployDir, nil)
	suite.LeaseHasPriority(t, deployedName, "%s")
}

func TestLeaseOfADeployedControllerOfAnotherName(t *testing.T) {
	manifest := kustomized(t, "namePrefix: team-\nnameSuffix: -two\nnamespace: renamed\n"+
		"resources: [deploy/base]\n")
	t.Cleanup(func() { suite.Kubectl(t, manifest, "delete", "--filename=-", "--ignore-not-found", "--wait=false") })
	suite.Kubectl(t, manifest, "apply", "--filename=-")
	suite.LeaseHasPriority(t, "renamed", "team-%s-two")
}
