package conformance

import (
	"strings"
	"testing"
)

// fooYAML returns a manifest of a Foo with that spec, as a user writes it.
func fooYAML(spec string) string {
	return "apiVersion: samplecontroller.k8s.io/v1alpha1\nkind: Foo\n" +
		"metadata: {name: example-foo}\n" + spec
}

func TestBadSpecIsRefusedWithAMessageThatHelps(t *testing.T) {
	n := parallelNamespace(t)
	const validName = `must be a valid Deployment name: lower-case letters, digits, '-' and '.', ` +
		`starting and ending with a letter or a digit, for example "example-foo"`
	tests := []struct{ name, spec, message string }{
		{"no spec", "", "spec: Required value"},
		{"no name", "spec: {replicas: 1}", "spec.deploymentName: Required value"},
		{"empty name", `spec: {deploymentName: ""}`, "should be at least 1 chars long"},
		{"null name", "spec: {deploymentName: null}", "spec.deploymentName: Required value"},
		{"name is a number", "spec: {deploymentName: 5}",
			`spec.deploymentName in body must be of type string: "integer"`},
		{"upper case", "spec: {deploymentName: Web}", validName},
		{"underscore", "spec: {deploymentName: my_web}", validName},
		{"slash", "spec: {deploymentName: other/web}", validName},
		{"leading dash", "spec: {deploymentName: -web}", validName},
		{"trailing dot", "spec: {deploymentName: web.}", validName},
		{"too long", "spec: {deploymentName: " + strings.Repeat("a", 254) + "}",
			"may not be more than 253"},
		{"negative replicas", "spec: {deploymentName: web, replicas: -1}",
			"spec.replicas in body should be greater than or equal to 0"},
		{"string replicas", `spec: {deploymentName: web, replicas: "2"}`,
			`spec.replicas in body must be of type integer: "string"`},
		{"fractional replicas", "spec: {deploymentName: web, replicas: 1.5}",
			"spec.replicas in body must be of type int"},
		{"replicas beyond int32", "spec: {deploymentName: web, replicas: 3000000000}",
			"spec.replicas: Invalid value: 3000000000: should be less than or equal to 2147483647"},
		{"unknown field", "spec: {deploymentName: web, replicsa: 2}",
			`unknown field "spec.replicsa"`},
	}
	for _, test := range tests {
		output, err := n.TryKubectl(fooYAML(test.spec), "create", "-f", "-")
		if err == nil || !strings.Contains(output, test.message) {
			t.Errorf("%s: kubectl printed %q, want it to contain %q", test.name, output, test.message)
		}
	}
}

func TestExampleFooWorks(t *testing.T) {
	n := parallelNamespace(t)

	n.Kubectl("apply", "-f", "../../artifacts/examples/example-foo.yaml")

	n.foos.When("example-foo", "is Ready", isReady)
	n.deployments.When("example-foo", "has 1 replica", hasReplicas(1))
}
