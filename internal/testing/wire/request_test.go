package wire

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestRequested(t *testing.T) {
	const apps, foos = "/apis/apps/v1", "/apis/samplecontroller.k8s.io/v1alpha1"
	for request, want := range map[string]string{ // verb, version, resource, namespace/name/subresource
		"GET /version":     "get /version",
		"GET /api":         "get /api",
		"GET /api/v1":      "get /api/v1",
		"GET " + apps:      "get " + apps,
		"POST /openapi/v3": "post /openapi/v3",

		"GET /api/v1/pods":                               "list v1 pods",
		"GET /api/v1/pods?watch=false":                   "list v1 pods",
		"GET /api/v1/pods?watch=0":                       "list v1 pods",
		"GET /api/v1/pods?watch=true":                    "watch v1 pods",
		"GET /api/v1/namespaces/a/pods/b?watch=1":        "watch v1 pods a/b",
		"GET " + foos + "/foos":                          "list v1alpha1 foos.samplecontroller.k8s.io",
		"GET " + foos + "/namespaces/a/foos/":            "list v1alpha1 foos.samplecontroller.k8s.io a",
		"PUT " + foos + "/namespaces/a/foos/b/status":    "update v1alpha1 foos.samplecontroller.k8s.io a/b/status",
		"GET " + apps + "/namespaces/a/deployments/b":    "get v1 deployments.apps a/b",
		"POST " + apps + "/namespaces/a/deployments":     "create v1 deployments.apps a",
		"PATCH " + apps + "/namespaces/a/deployments/b":  "patch v1 deployments.apps a/b",
		"DELETE " + apps + "/namespaces/a/deployments/b": "delete v1 deployments.apps a/b",
		"DELETE " + apps + "/namespaces/a/deployments":   "deletecollection v1 deployments.apps a",
		"GET /api/v1/namespaces/a/pods/b/proxy/healthz":  "get v1 pods a/b/proxy",
		"GET /api/v1/namespaces":                         "list v1 namespaces",
		"GET /api/v1/namespaces/a":                       "get v1 namespaces /a",
		"PUT /api/v1/namespaces/a/finalize":              "update v1 namespaces /a/finalize",
		"PUT /api/v1/namespaces/a/status":                "update v1 namespaces /a/status",
	} {
		method, target, _ := strings.Cut(request, " ")
		e := Requested(httptest.NewRequest(method, target, nil))
		got := fmt.Sprintf("%s %s %s %s/%s/%s", e.Verb, e.Version, e.Resource, e.Namespace, e.Name, e.Subresource)
		if e.Resource == "" {
			got = e.Verb + " " + e.Path
		}
		if got = strings.TrimRight(got, " /"); got != want {
			t.Errorf("%s: got %s, want %s", request, got, want)
		}
	}
}

func TestWhatIsHeldAndWhatIsAWrite(t *testing.T) {
	for what, want := range map[string][2]bool{ // held, and a write
		"get ":                              {false, false},
		"update leases.coordination.k8s.io": {false, false},
		"get foos.samplecontroller.k8s.io":  {true, false},
		"list pods":                         {true, false},
		"watch pods":                        {true, false},
		"create events":                     {true, false},
		"patch events.events.k8s.io":        {true, false},
		"create tokenreviews.authentication.k8s.io": {true, false},
		"create deployments.apps":                   {true, true},
		"update deployments.apps":                   {true, true},
		"patch deployments.apps":                    {true, true},
		"delete deployments.apps":                   {true, true},
		"deletecollection deployments.apps":         {true, true},
	} {
		var e Event
		e.Verb, e.Resource, _ = strings.Cut(what, " ")
		if got := [2]bool{e.mayBeHeld(), e.isWrite()}; got != want {
			t.Errorf("%s: got %v, want %v", what, got, want)
		}
	}
}
