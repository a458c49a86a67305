package conformance

import (
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"example.com/sample-controller/test/internal/audit"
)

// lacksPermission reports whether the API server refused r because its user lacks a permission.
// Creating something in a namespace that is being deleted is forbidden, too, but to everybody.
func lacksPermission(r audit.Request) bool {
	err := apierrors.FromObject(&r.ResponseStatus)
	return apierrors.IsForbidden(err) &&
		!apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// isAbout reports whether r is about objects of that name, or about Events of these objects.
func isAbout(r audit.Request, name string) bool {
	return r.ObjectRef.Name == name || strings.HasPrefix(r.ObjectRef.Name, name+".")
}

// isConflict reports whether the API server refused r because the object exists or has changed.
func isConflict(r audit.Request) bool { return r.ResponseStatus.Code == http.StatusConflict }

// now returns the end of the audit log, where the next request will be noted.
func now(t *testing.T) audit.Mark {
	t.Helper()
	end, err := audit.End(*auditLogPath)
	if err != nil {
		t.Fatalf("%v; name its file with -audit-log", err)
	}
	return end
}

// requests returns the requests of p that stand after a mark in the audit log and for which selects
// returns true.
func (p *program) requests(
	t *testing.T, after audit.Mark, selects func(audit.Request) bool,
) (found []audit.Request) {
	t.Helper()
	requests, _, err := audit.Read(*auditLogPath, after, p.user)
	if err != nil {
		t.Fatalf("%v; name its file with -audit-log", err)
	}
	for _, r := range requests {
		if r.User() == p.user && selects(r) {
			found = append(found, r)
		}
	}
	return found
}

// in reports whether r is about an object in the namespace.
func (n *namespace) in(r audit.Request) bool { return r.ObjectRef.Namespace == n.name }

// few is more requests than any correct reaction in these tests takes, and fewer than a loop makes.
const few = 30

// fewRequests fails the test if the shared controller is in a loop.
func (n *namespace) fewRequests(begin audit.Mark) {
	n.t.Helper()
	if requests := shared.requests(n.t, begin, n.in); len(requests) > few {
		n.t.Errorf("the controller made %d requests, want at most %d; does it repeat them without "+
			"a delay? %v", len(requests), few, requests)
	}
}

func TestRefusalsAreToldApart(t *testing.T) {
	n := newNamespace(t)
	const held = "{apiVersion: v1, kind: ConfigMap, metadata: {name: held, finalizers: [example.com/hold]}}"
	if output, err := kubectl(t, n.name, held, "create", "-f", "-"); err != nil {
		t.Fatal(output)
	}
	t.Cleanup(func() {
		n.kubectl("patch", "configmap/held", "--type=merge", `--patch={"metadata":{"finalizers":null}}`)
	})
	n.kubectl("delete", "namespace", n.name, "--wait=false")
	begin, somebody := now(t), &program{user: n.name + "-somebody"}

	for _, command := range [][]string{
		{"create", "configmap", "late", "--as-group=system:masters"}, {"get", "configmaps"},
	} {
		output, err := kubectl(t, n.name, "", append(command, "--as="+somebody.user)...)
		if err == nil {
			t.Fatalf("kubectl %q succeeded, want it refused: %s", command, output)
		}
	}

	refused := somebody.requests(t, begin, func(r audit.Request) bool {
		return r.ResponseStatus.Code == http.StatusForbidden
	})
	if len(refused) != 2 || lacksPermission(refused[0]) || !lacksPermission(refused[1]) {
		t.Errorf("got the refusals %v; want one for the namespace that is being deleted, and one for "+
			"a missing permission", refused)
	}
}
