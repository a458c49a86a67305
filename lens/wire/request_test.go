package wire

import (
	"net/http/httptest"
	"reflect"
	"testing"
)

func TestRequested(t *testing.T) {
	const apps, foos = "/apis/apps/v1", "/apis/samplecontroller.k8s.io/v1alpha1"
	const resource = "foos.samplecontroller.k8s.io"
	for _, test := range []struct {
		method, target string
		want           Event
	}{
		{"GET", "/version", Event{Verb: "get", Path: "/version"}},
		{"GET", "/api", Event{Verb: "get", Path: "/api"}},
		{"GET", "/api/v1", Event{Verb: "get", Path: "/api/v1"}},
		{"GET", apps, Event{Verb: "get", Path: apps}},
		{"GET", "/", Event{Verb: "get", Path: "/"}},
		{"POST", "/openapi/v3", Event{Verb: "post", Path: "/openapi/v3"}},

		{"GET", "/api/v1/pods", Event{Verb: "list", Version: "v1", Resource: "pods"}},
		{"GET", "/api/v1/pods?watch=false", Event{Verb: "list", Version: "v1", Resource: "pods"}},
		{"GET", "/api/v1/pods?watch=0", Event{Verb: "list", Version: "v1", Resource: "pods"}},
		{"GET", "/api/v1/pods?watch=true", Event{Verb: "watch", Version: "v1", Resource: "pods"}},
		{"GET", "/api/v1/namespaces/a/pods/b?watch=1",
			Event{Verb: "watch", Version: "v1", Resource: "pods", Namespace: "a", Name: "b"}},
		{"GET", foos + "/foos", Event{Verb: "list", Version: "v1alpha1", Resource: resource}},
		{"GET", foos + "/namespaces/a/foos/",
			Event{Verb: "list", Version: "v1alpha1", Resource: resource, Namespace: "a"}},
		{"GET", apps + "/namespaces/a/deployments/b",
			Event{Verb: "get", Version: "v1", Resource: "deployments.apps", Namespace: "a", Name: "b"}},
		{"POST", apps + "/namespaces/a/deployments",
			Event{Verb: "create", Version: "v1", Resource: "deployments.apps", Namespace: "a"}},
		{"PATCH", apps + "/namespaces/a/deployments/b",
			Event{Verb: "patch", Version: "v1", Resource: "deployments.apps", Namespace: "a", Name: "b"}},
		{"DELETE", apps + "/namespaces/a/deployments/b",
			Event{Verb: "delete", Version: "v1", Resource: "deployments.apps", Namespace: "a", Name: "b"}},
		{"DELETE", apps + "/namespaces/a/deployments",
			Event{Verb: "deletecollection", Version: "v1", Resource: "deployments.apps", Namespace: "a"}},
		{"PUT", foos + "/namespaces/a/foos/b/status", Event{Verb: "update",
			Version: "v1alpha1", Resource: resource, Namespace: "a", Name: "b", Subresource: "status"}},
		{"GET", "/api/v1/namespaces/a/pods/b/proxy/healthz",
			Event{Verb: "get", Version: "v1", Resource: "pods", Namespace: "a", Name: "b",
				Subresource: "proxy"}},

		{"GET", "/api/v1/namespaces", Event{Verb: "list", Version: "v1", Resource: "namespaces"}},
		{"GET", "/api/v1/namespaces/a",
			Event{Verb: "get", Version: "v1", Resource: "namespaces", Name: "a"}},
		{"PUT", "/api/v1/namespaces/a/finalize",
			Event{Verb: "update", Version: "v1", Resource: "namespaces", Name: "a",
				Subresource: "finalize"}},
		{"PUT", "/api/v1/namespaces/a/status",
			Event{Verb: "update", Version: "v1", Resource: "namespaces", Name: "a",
				Subresource: "status"}},
	} {
		got := Requested(httptest.NewRequest(test.method, test.target, nil))
		if !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s %s: got %+v, want %+v", test.method, test.target, got, test.want)
		}
	}
}

func TestWhatIsHeldAndWhatIsAWrite(t *testing.T) {
	for _, test := range []struct {
		e              Event
		held, injected bool
	}{
		{Event{Verb: "get", Path: "/version"}, false, false},
		{Event{Verb: "update", Resource: "leases.coordination.k8s.io"}, false, false},
		{Event{Verb: "get", Resource: "foos.samplecontroller.k8s.io"}, true, false},
		{Event{Verb: "list", Resource: "pods"}, true, false},
		{Event{Verb: "watch", Resource: "pods"}, true, false},
		{Event{Verb: "create", Resource: "events"}, true, false},
		{Event{Verb: "patch", Resource: "events.events.k8s.io"}, true, false},
		{Event{Verb: "create", Resource: "tokenreviews.authentication.k8s.io"}, true, false},
		{Event{Verb: "create", Resource: "deployments.apps"}, true, true},
		{Event{Verb: "update", Resource: "deployments.apps"}, true, true},
		{Event{Verb: "patch", Resource: "deployments.apps"}, true, true},
		{Event{Verb: "delete", Resource: "deployments.apps"}, true, true},
		{Event{Verb: "deletecollection", Resource: "deployments.apps"}, true, true},
	} {
		if got := test.e.mayBeHeld(); got != test.held {
			t.Errorf("%+v may be held: got %v, want %v", test.e, got, test.held)
		}
		if got := test.e.isWrite(); got != test.injected {
			t.Errorf("%+v is a write: got %v, want %v", test.e, got, test.injected)
		}
	}
}
