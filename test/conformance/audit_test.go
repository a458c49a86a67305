package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	StageTimestamp   metav1.MicroTime // when it was answered
}

func (r request) String() string {
	return fmt.Sprintf("%s %s (%d)", r.Verb, r.RequestURI, r.ResponseStatus.Code)
}

// isWatch reports whether r waits for news, and costs nothing while there are none.
func (r request) isWatch() bool { return r.Verb == "watch" }

// isWrite reports whether r changes something.
func (r request) isWrite() bool {
	return r.Verb != "get" && r.Verb != "list" && r.Verb != "watch"
}

// isConflict reports whether the API server refused r because of what is there already.
func (r request) isConflict() bool { return r.ResponseStatus.Code == http.StatusConflict }

// lacksPermission reports whether the API server refused r because of what the user may not do. It
// forbids other things, too: to create something in a namespace that is being deleted.
func (r request) lacksPermission() bool {
	err := apierrors.FromObject(&r.ResponseStatus)
	return apierrors.IsForbidden(err) &&
		!apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// isAbout reports whether r is about the objects of that name, events about them included.
func (r request) isAbout(name string) bool {
	return r.ObjectRef.Name == name || strings.HasPrefix(r.ObjectRef.Name, name+".")
}

// mark is a place in the audit log.
type mark int64

// now returns the end of the audit log, where the next request will be noted.
func now(t *testing.T) mark {
	t.Helper()
	info, err := os.Stat(*auditLogPath)
	if err != nil {
		t.Fatalf("no audit log: %v; set -audit-log", err)
	}
	return mark(info.Size())
}

// requests returns the requests that p began after a place in the audit log, those that select
// returns true for. The API server notes a request before it answers it.
func (p *program) requests(t *testing.T, after mark, selects func(request) bool) []request {
	t.Helper()
	file, err := os.Open(*auditLogPath)
	if err != nil {
		t.Fatalf("no audit log: %v; set -audit-log", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.NewSectionReader(file, int64(after), 1<<40))
	if err != nil {
		t.Fatal(err)
	}
	var found []request
	for line := range bytes.Lines(text) {
		if !bytes.Contains(line, []byte(p.user)) || !bytes.HasSuffix(line, []byte("\n")) {
			continue
		}
		var r request
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatalf("reading the audit log: %v: %s", err, line)
		}
		// A watch is noted a second time when it ends, which may be much later.
		counts := r.Stage == "ResponseComplete" != r.isWatch()
		if r.ImpersonatedUser.Username == p.user && counts && selects(r) {
			found = append(found, r)
		}
	}
	return found
}

// in returns a condition for requests in the namespace.
func (n *namespace) in(r request) bool { return r.ObjectRef.Namespace == n.name }

// few is more requests than any reaction in these tests takes, and less than a loop makes.
const few = 30

// fewRequests fails the test if the shared controller is in a loop.
func (n *namespace) fewRequests(begin mark) {
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

	refused := somebody.requests(t, begin, func(r request) bool {
		return r.ResponseStatus.Code == http.StatusForbidden
	})
	if len(refused) != 2 || refused[0].lacksPermission() || !refused[1].lacksPermission() {
		t.Errorf("got %v; want a refusal because the namespace goes, and one for lack of a permission",
			refused)
	}
}
