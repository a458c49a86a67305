package conformance

import (
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"example.com/sample-controller/test/internal/audit"
)

// lacksPermission reports whether the API server refused r because of what the user may not do. It
// forbids other things, too: to create something in a namespace that is being deleted.
func lacksPermission(r audit.Request) bool {
	err := apierrors.FromObject(&r.ResponseStatus)
	return apierrors.IsForbidden(err) &&
		!apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// isAbout reports whether r is about the objects of that name, events about them included.
func isAbout(r audit.Request, name string) bool {
	return r.ObjectRef.Name == name || strings.HasPrefix(r.ObjectRef.Name, name+".")
}

// isConflict reports whether the API server refused r because of what is there already.
func isConflict(r audit.Request) bool { return r.ResponseStatus.Code == http.StatusConflict }

// now returns the end of the audit log, where the next request will be noted.
func now(t *testing.T) audit.Mark {
	t.Helper()
	end, err := audit.End(*auditLogPath)
	if err != nil {
		t.Fatalf("%v; set -audit-log", err)
	}
	return end
}

// requests returns the requests that p began after a place in the audit log, those that selects
// returns true for.
func (p *program) requests(
	t *testing.T, after audit.Mark, selects func(audit.Request) bool,
) (found []audit.Request) {
	t.Helper()
	requests, _, err := audit.Read(*auditLogPath, after, p.user)
	if err != nil {
		t.Fatalf("%v; set -audit-log", err)
	}
	for _, r := range requests {
		if r.User() == p.user && selects(r) {
			found = append(found, r)
		}
	}
	return found
}

// in returns a condition for requests in the namespace.
func (n *namespace) in(r audit.Request) bool { return r.ObjectRef.Namespace == n.name }

// few is more requests than any reaction in these tests takes, and less than a loop makes.
const few = 30

// fewRequests fails the test if the shared controller is in a loop.
func (n *namespace) fewRequests(begin audit.Mark) {
	n.t.Helper()
	if requests := shared.requests(n.t, begin, n.in); len(requests) > few {
		n.t.Errorf("got %d requests, want no more than %d: %v", len(requests), few, requests)
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
			t.Fatalf("%q: got no error, but %s", command, output)
		}
	}

	refused := somebody.requests(t, begin, func(r audit.Request) bool {
		return r.ResponseStatus.Code == http.StatusForbidden
	})
	if len(refused) != 2 || lacksPermission(refused[0]) || !lacksPermission(refused[1]) {
		t.Errorf("got %v; want a refusal because the namespace goes, and one for lack of a permission",
			refused)
	}
}
