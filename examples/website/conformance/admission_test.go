package conformance

import (
	"fmt"
	"strings"
	"testing"
)

// websiteYAML returns a manifest of a Website, as a user writes it.
func websiteYAML(name, spec string) string {
	return fmt.Sprintf("apiVersion: website.example.com/v1alpha1\nkind: Website\n"+
		"metadata: {name: %s}\nspec: {%s}\n", name, spec)
}

func TestBadWebsiteIsRefusedWithAMessageThatHelps(t *testing.T) {
	n := parallelNamespace(t)
	const badName = "metadata.name must be a valid Service name"
	tests := []struct{ name, spec, message string }{
		{"web", "", "spec.content: Required value"},
		{"web", `content: ""`, "spec.content in body should be at least 1 chars long"},
		{"web", "content: " + strings.Repeat("x", 65537), "Too long: may not be more than 65536"},
		{"web", "content: x, port: 0", "spec.port in body should be greater than or equal to 1"},
		{"web", "content: x, port: 65536", "spec.port in body should be less than or equal to 65535"},
		{"web", "content: x, replicas: -1", "spec.replicas in body should be greater than or equal to 0"},
		{"web", "content: x, image: a b", "must be the name of an image, without spaces"},
		{"web", "content: x, ports: 80", `unknown field "spec.ports"`},
		{"1web", "content: x", badName},
		{"web.example", "content: x", badName},
		{strings.Repeat("a", 64), "content: x", badName},
	}
	for _, test := range tests {
		yaml := websiteYAML(test.name, test.spec)
		output, err := n.TryKubectl(yaml, "create", "-f", "-")
		if err == nil || !strings.Contains(output, test.message) {
			t.Errorf("%.200s\nkubectl printed %q, want it to contain %q", yaml, output, test.message)
		}
	}
}

func TestAbsentFieldsGetDefaults(t *testing.T) {
	n := parallelNamespace(t)

	n.Apply(websiteYAML("web", "content: x"))

	spec := n.websites.When("web", "is up", isUp).Spec
	if *spec.Replicas != 1 || spec.Port != 80 || spec.Image == "" {
		t.Errorf("got spec %+v, want 1 replica, port 80 and an image", spec)
	}
}

func TestWebsiteWithTheLongestNameWorks(t *testing.T) {
	n := parallelNamespace(t)

	n.createUp(newWebsite(strings.Repeat("a", 63), 1))
}
