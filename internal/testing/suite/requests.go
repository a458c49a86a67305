package suite

import (
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"example.com/sample-controller/internal/testing/suite/audit"
)

// Now returns the end of the audit log, where the next request will be noted.
func Now(t *testing.T) audit.Mark {
	t.Helper()
	end, err := audit.End(auditLogPath)
	if err != nil {
		t.Fatalf("%v; name its file with -audit-log", err)
	}
	return end
}

// Requests returns the requests of p that stand after a mark in the audit log and for which selects
// returns true.
func (p *Program) Requests(
	t *testing.T, after audit.Mark, selects func(audit.Request) bool,
) (found []audit.Request) {
	t.Helper()
	requests, _, err := audit.Read(auditLogPath, after, p.User)
	if err != nil {
		t.Fatalf("%v; name its file with -audit-log", err)
	}
	for _, r := range requests {
		if r.User() == p.User && selects(r) {
			found = append(found, r)
		}
	}
	return found
}

// Has reports whether r is about an object in the namespace.
func (n *Namespace) Has(r audit.Request) bool { return r.ObjectRef.Namespace == n.Name }

// Requests returns the requests of the shared controller in the namespace.
func (n *Namespace) Requests(after audit.Mark) []audit.Request {
	n.T.Helper()
	return shared.Requests(n.T, after, n.Has)
}

// FewRequests fails the test if the shared controller has made more requests in the namespace. most
// should be more than any correct reaction takes, and fewer than a loop makes.
func (n *Namespace) FewRequests(after audit.Mark, most int) {
	n.T.Helper()
	if requests := n.Requests(after); len(requests) > most {
		n.T.Errorf("the controller made %d requests, want at most %d; does it repeat them without "+
			"a delay? %v", len(requests), most, requests)
	}
}

// LacksPermission reports whether the API server refused r because its user lacks a permission.
// Creating something in a namespace that is being deleted is forbidden, too, but to everybody.
func LacksPermission(r audit.Request) bool {
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
