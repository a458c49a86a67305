package wire

import (
	"fmt"
	"io"
	"net/http"
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

func TestHowARequestEnds(t *testing.T) {
	notFound := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", jsonType)
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"kind": "Status", "metadata": {}, "reason": "NotFound", "code": 404}`)
	}
	breaks := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", jsonType)
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "{")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	for name, test := range map[string]struct {
		query  string
		answer http.HandlerFunc // nil: there is no API server
		code   int
		reason string
	}{
		"refused":         {"/b", notFound, 404, "NotFound"},
		"a watch refused": {"?watch=true", notFound, 404, "NotFound"},
		"no API server":   {"/b", nil, 0, "connection refused"},
		"a broken answer": {"/b", breaks, 0, io.ErrUnexpectedEOF.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			l := startLine(t, test.answer)
			if test.answer == nil {
				l.api.Close()
			}
			response, err := l.do(http.MethodGet, deploymentsPath+test.query, "", nil)
			if err == nil {
				_, err = io.ReadAll(response.Body)
				response.Body.Close()
			}
			if (err != nil) != (test.code == 0) {
				t.Errorf("got the error %v", err)
			}
			e := l.awaitKind(1, Answered)[0]
			if e.Code != test.code || !strings.Contains(e.Reason, test.reason) ||
				e.Object != nil || e.Injected {
				t.Errorf("got %+v, want %d, %s", e, test.code, test.reason)
			}
			if e.Verb == "watch" {
				l.awaitKind(1, WatchClosed) // each watch ends with it
			}
		})
	}
}
