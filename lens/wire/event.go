// Package wire stands between a program and the API server. It passes on what they say to each
// other, tells what that was, and can hold it back or break it.
package wire

import (
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// Kind says what has happened.
type Kind string

// A request goes through RequestArrived, RequestPassed and Answered. A watch is a request that ends
// with WatchClosed; each of its events goes through EventArrived and EventPassed. Not everything
// passes, but each request is Answered in some way, and then each watch is closed.
const (
	RequestArrived Kind = "request arrived" // from the program; now it may be held
	RequestPassed  Kind = "request passed"  // to the API server
	Answered       Kind = "answered"        // the program gets the answer; for a watch, its header
	WatchClosed    Kind = "watch closed"
	EventArrived   Kind = "event arrived" // from the API server; now it may be held
	EventPassed    Kind = "event passed"  // to the program
)

// Event is something that has happened on the wire.
type Event struct {
	Kind Kind      `json:"kind"`
	At   time.Time `json:"at"`
	// Request numbers the requests. All events of a request, and of its watch, have the same.
	Request int `json:"request"`

	// These say what was requested. Verb is that of RBAC: get, list, watch, create, update, patch,
	// delete, deletecollection.
	Verb        string `json:"verb,omitempty"`
	Version     string `json:"version,omitempty"`  // of the API: "v1alpha1"
	Resource    string `json:"resource,omitempty"` // "foos.samplecontroller.k8s.io", "events.events.k8s.io", "pods"
	Namespace   string `json:"namespace,omitempty"`
	Name        string `json:"name,omitempty"`
	Subresource string `json:"subresource,omitempty"`

	// Number numbers the events of all watches, from 1. It is 0 for everything else.
	Number int `json:"number,omitempty"`
	// Type is that of a watch event: ADDED, MODIFIED, DELETED, BOOKMARK or ERROR.
	Type string `json:"type,omitempty"`
	// Object is what was sent with the request, what was answered, or what the watch event is about.
	// It is nil if there was none, if it is a list, and before Read.
	Object *Object `json:"object,omitempty"`
	// Initial: the watch event belongs to the initial list (see WatchList), or is the bookmark at
	// its end.
	Initial bool `json:"initial,omitempty"`

	// Code is the HTTP status of the answer or, after Read, that of an ERROR event; 0 if the
	// connection broke.
	Code int `json:"code,omitempty"`
	// Reason is that of a Status, after Read: Conflict, Expired, ...; or what broke the connection.
	Reason string `json:"reason,omitempty"`
	// Injected: this is not from the API server, somebody has asked the Proxy for it.
	Injected bool `json:"injected,omitempty"`

	content func() content // nil if there is none
}

// Read decodes the Object, or the Status in its place. Decoding takes longer than proxying, so the
// observer calls Read later, when no request waits.
func (e *Event) Read() {
	if e.content == nil {
		return
	}
	c := e.content()
	e.content, e.Object = nil, c.object(e.Resource)
	if c.Kind == "Status" {
		e.Reason = c.Reason
		if e.Type != "" {
			e.Code = c.Code
		}
	}
}

// Object is what a picture needs to know of an object.
type Object struct {
	Resource        string `json:"resource"`
	Kind            string `json:"kind"`
	Namespace       string `json:"namespace,omitempty"`
	Name            string `json:"name"`
	UID             string `json:"uid,omitempty"`
	ResourceVersion string `json:"resourceVersion,omitempty"`
	Deleting        bool   `json:"deleting,omitempty"` // it has a deletionTimestamp
	// Owner is the owner that is its controller; for an Event, what it is about.
	Owner *Owner `json:"owner,omitempty"`
	// Selects are the values of the labels that it selects by. Without an owner, one may be the UID
	// of the object that it is made for.
	Selects []string `json:"selects,omitempty"`
	// Summary is for people: "2 of 3 available", "Ready", "Ready False: DeploymentNameTaken".
	Summary string `json:"summary,omitempty"`
	// Managers are those whose entries in the managedFields are the newest, and Written is the time
	// of these, in whole seconds. A write that only takes something off makes no entry.
	Managers []string  `json:"managers,omitempty"`
	Written  time.Time `json:"written,omitzero"`
}

// Owner is a reference to another object in the same namespace.
type Owner struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	UID  string `json:"uid,omitempty"`
}

var infos = request.RequestInfoFactory{
	APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api"),
}

// requested says what a request asks for, by the API server's rules.
func requested(r *http.Request) Event {
	info, _ := infos.NewRequestInfo(r) // with an error, it has what could be read
	if !info.IsResourceRequest {
		return Event{Verb: info.Verb} // such as for /version
	}
	e := Event{
		Verb: info.Verb, Version: info.APIVersion, Namespace: info.Namespace, Name: info.Name,
		Resource:    schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}.String(),
		Subresource: info.Subresource,
	}
	if e.Resource == "namespaces" {
		e.Namespace = ""
	}
	if e.Verb == "list" {
		e.Name = "" // it is that of a selector
	}
	return e
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
