package conformance

import (
	"regexp"
	"slices"
	"testing"

	"example.com/sample-controller/internal/testing/suite"
)

const namespacedDir = deployDir + "/namespaced"

// inNoNamespace are permissions for resources without a namespace, which no Role can grant.
var inNoNamespace = []string{
	"create tokenreviews.authentication.k8s.io", "create subjectaccessreviews.authorization.k8s.io",
}

func TestNamespacedDeployedControllerUsesExactlyItsPermissions(t *testing.T) {
	n := newNamespace(t)
	deployment := suite.Deploy(t, namespacedDir, watchOnly(t, n.Name))
	usesExactlyItsPermissions(n, deployment)
	for _, p := range suite.GrantedTo(t, deployment) {
		if p.Namespace == "" && !slices.Contains(inNoNamespace, p.String()) {
			t.Errorf("the controller may %v in all namespaces, want in one only", p)
		}
	}
}

func TestRemovedDeployedControllerKeepsNoPermission(t *testing.T) {
	for _, dir := range []string{deployDir, namespacedDir} {
		t.Run(dir, func(t *testing.T) { suite.RemovedKeepsNoPermission(t, dir) })
	}
}

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
