package process

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"example.com/sample-controller/internal/leader"
	"example.com/sample-controller/internal/testing/must"
)

// preflight checks an API server that answers the path of the Lease with code lease, and any other
// with code.
func preflight(t *testing.T, code, lease int) error {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/leases/test") {
			code = lease
		}
		w.WriteHeader(code)
		_, _ = w.Write([]byte(`{"kind":"APIResourceList","resources":[]}`))
	}))
	defer server.Close()
	return preflightAt(t, server.URL)
}

func preflightAt(t *testing.T, url string) error {
	t.Helper()
	o := &Options{Leader: leader.Config{Namespace: "default", Name: "test"}}
	c := must.Get(NewClients(&rest.Config{Host: url}, o))(t)
	foos := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "foos"}
	return c.Preflight(t.Context(), foos, "kubectl apply -f crd.yaml", true)
}

func TestPreflightSaysWhatToDo(t *testing.T) {
	closed := preflightAt(t, "http://127.0.0.1:1") // nothing listens on this port
	noCRD := preflight(t, http.StatusNotFound, 0)
	for _, test := range []struct {
		err  error
		want string
	}{
		{closed, "does not answer"},
		{closed, "make cluster"},
		{noCRD, "does not serve foos.example.com"},
		{noCRD, "kubectl apply -f crd.yaml"},
		{preflight(t, http.StatusUnauthorized, 0), "refuses the credentials"},
		{preflight(t, http.StatusOK, http.StatusForbidden), "--leader-elect-resource-namespace"},
	} {
		if test.err == nil || !strings.Contains(test.err.Error(), test.want) {
			t.Errorf("got error %v, want it to contain %q", test.err, test.want)
		}
	}
	if err := preflight(t, http.StatusOK, http.StatusNotFound); err != nil {
		t.Errorf("a Lease that does not exist yet: got error %v, want none", err)
	}
}
