package wire

import (
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Requested says what a request asks for, by the API server's rules for paths.
func Requested(r *http.Request) (e Event) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	var group string
	switch {
	case parts[0] == "api" && len(parts) > 2: // api/VERSION/RESOURCE
		e.Version, parts = parts[1], parts[2:]
	case parts[0] == "apis" && len(parts) > 3: // apis/GROUP/VERSION/RESOURCE
		group, e.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return Event{Verb: strings.ToLower(r.Method), Path: r.URL.Path}
	}
	ofNamespace := len(parts) > 2 && (parts[2] == "status" || parts[2] == "finalize")
	if parts[0] == "namespaces" && len(parts) > 2 && !ofNamespace {
		e.Namespace, parts = parts[1], parts[2:]
	}
	e.Resource = schema.GroupResource{Group: group, Resource: parts[0]}.String()
	if len(parts) > 1 {
		e.Name = parts[1]
	}
	if len(parts) > 2 {
		e.Subresource = parts[2]
	}
	e.Verb = verb(r, e.Name != "")
	return e
}

// verb returns the verb of RBAC for a request for one object or, if it is not named, for many.
func verb(r *http.Request, named bool) string {
	watch := r.URL.Query().Get("watch")
	switch {
	case r.Method == http.MethodPost:
		return "create"
	case r.Method == http.MethodPut:
		return "update"
	case r.Method == http.MethodPatch:
		return "patch"
	case r.Method == http.MethodDelete && named:
		return "delete"
	case r.Method == http.MethodDelete:
		return "deletecollection"
	case watch != "" && watch != "0" && watch != "false":
		return "watch"
	case named:
		return "get"
	}
	return "list"
}

const leases = "leases.coordination.k8s.io"

// mayBeHeld is false for what keeps a program alive: its Lease, and what it asks when it starts.
func (e *Event) mayBeHeld() bool { return e.Resource != "" && e.Resource != leases }

// isWrite is false for writes that are not the program's work: Leases, Events, and reviews, which
// ask what somebody may do.
func (e *Event) isWrite() bool {
	switch e.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		resource, _, _ := strings.Cut(e.Resource, ".")
		return e.mayBeHeld() && resource != "events" && !strings.HasSuffix(resource, "reviews")
	}
	return false
}
