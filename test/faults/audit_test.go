package faults

import (
	"testing"

	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/suite/audit"
)

// isWrite reports whether r is a write, accepted or refused, to anything but the Lease.
func isWrite(r audit.Request) bool { return r.IsWrite() && r.ObjectRef.Resource != "leases" }

func isCreation(r audit.Request) bool { return r.Creates("deployments") }

func isDeletion(r audit.Request) bool { return r.Deletes("deployments") }

// now returns the end of the audit log, where the next request will be noted.
func now(t *testing.T) audit.Mark {
	t.Helper()
	return must.Get(audit.End(controlPlane.AuditLog()))(t)
}

// requests returns the user's requests in the namespace that stand after a mark in the audit log
// and for which selects returns true.
func (h *history) requests(
	after audit.Mark, user string, selects func(audit.Request) bool,
) (found []audit.Request) {
	h.t.Helper()
	requests, _, err := audit.Read(controlPlane.AuditLog(), after, user)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, r := range requests {
		if r.User() == user && r.ObjectRef.Namespace == h.namespace && selects(r) {
			found = append(found, r)
		}
	}
	return found
}
