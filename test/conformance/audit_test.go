package conformance

import (
	"net/http"
	"testing"

	"example.com/sample-controller/internal/testing/suite"
	"example.com/sample-controller/internal/testing/suite/audit"
)

func TestRefusalsAreToldApart(t *testing.T) {
	n := newNamespace(t)
	const held = "{apiVersion: v1, kind: ConfigMap, metadata: {name: held, finalizers: [example.com/hold]}}"
	if output, err := n.TryKubectl(held, "create", "-f", "-"); err != nil {
		t.Fatal(output)
	}
	t.Cleanup(func() {
		n.Kubectl("patch", "configmap/held", "--type=merge", `--patch={"metadata":{"finalizers":null}}`)
	})
	n.Kubectl("delete", "namespace", n.Name, "--wait=false")
	begin, somebody := suite.Now(t), &suite.Program{User: n.Name + "-somebody"}

	for _, command := range [][]string{
		{"create", "configmap", "late", "--as-group=system:masters"}, {"get", "configmaps"},
	} {
		output, err := n.TryKubectl("", append(command, "--as="+somebody.User)...)
		if err == nil {
			t.Fatalf("kubectl %q succeeded, want it refused: %s", command, output)
		}
	}

	refused := somebody.Requests(t, begin, func(r audit.Request) bool {
		return r.ResponseStatus.Code == http.StatusForbidden
	})
	if len(refused) != 2 || suite.LacksPermission(refused[0]) || !suite.LacksPermission(refused[1]) {
		t.Errorf("got the refusals %v; want one for the namespace that is being deleted, and one for "+
			"a missing permission", refused)
	}
}
