package faults

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// request is what the audit log says about a request.
type request struct {
	Stage            string
	Verb             string
	RequestURI       string
	ImpersonatedUser struct{ Username string }
	ObjectRef        struct{ Resource, Subresource, Namespace, Name string }
	ResponseStatus   metav1.Status
}

func (r request) String() string {
	return fmt.Sprintf("%s %s %s (%d)", r.Verb, r.RequestURI, r.ObjectRef.Name,
		r.ResponseStatus.Code)
}

// isWrite reports whether r changes something, or tries to, but for the Lease.
func isWrite(r request) bool {
	reads := r.Verb == "get" || r.Verb == "list" || r.Verb == "watch"
	return !reads && r.ObjectRef.Resource != "leases"
}

func isAccepted(r request) bool { return isWrite(r) && r.ResponseStatus.Code < 300 }

func isRefused(r request) bool { return isWrite(r) && r.ResponseStatus.Code >= 300 }

// isCreation reports whether r created a Deployment.
func isCreation(r request) bool {
	return r.Verb == "create" && r.ObjectRef.Resource == "deployments" && r.ResponseStatus.Code == 201
}

// isDeletion reports whether r deleted a Deployment.
func isDeletion(r request) bool {
	return r.Verb == "delete" && r.ObjectRef.Resource == "deployments" && r.ResponseStatus.Code == 200
}

// mark is a place in the audit log.
type mark int64

// now returns the end of the audit log, where the next request will be noted.
func now(t *testing.T) mark {
	t.Helper()
	info, err := os.Stat(controlPlane.AuditLog())
	if err != nil {
		t.Fatal(err)
	}
	return mark(info.Size())
}

// requests returns the requests that a user made in the namespace after a place in the audit log
// and that select returns true for.
func (h *history) requests(after mark, user string, selects func(request) bool) []request {
	h.t.Helper()
	file, err := os.Open(controlPlane.AuditLog())
	if err != nil {
		h.t.Fatal(err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.NewSectionReader(file, int64(after), 1<<40))
	if err != nil {
		h.t.Fatal(err)
	}
	var found []request
	for line := range bytes.Lines(text) {
		if !bytes.Contains(line, []byte(user)) {
			continue
		}
		var r request
		if json.Unmarshal(line, &r) != nil {
			continue // an API server that was killed left half a line
		}
		counts := r.Stage == "ResponseComplete" && r.ObjectRef.Namespace == h.namespace
		if counts && r.ImpersonatedUser.Username == user && selects(r) {
			found = append(found, r)
		}
	}
	return found
}
