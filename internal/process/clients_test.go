package process

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"example.com/sample-controller/internal/leader"
	"example.com/sample-controller/internal/testing/fakes"
	"example.com/sample-controller/internal/testing/must"
)

// preflight checks the API server at a URL.
func preflight(t *testing.T, url string) error {
	t.Helper()
	o := &Options{Leader: leader.Config{Namespace: "default", Name: "test"}}
	c := must.Get(NewClients(&rest.Config{Host: url}, o))(t)
	foos := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "foos"}
	return c.Preflight(t.Context(), foos, "kubectl apply -f crd.yaml", true)
}

func TestLeaseIsRenewedAlthoughARequestHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := fakes.New(t)
		o := &Options{Leader: leader.Config{Namespace: "default", Name: "test",
			LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second}}
		c := must.Get(NewClients(server.Config, o))(t)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.Elector.Run(ctx, func(ctx context.Context) { <-ctx.Done() }) }()
		synctest.Wait()
		server.Before("update", "leases", 1, func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})
		time.Sleep(time.Minute)
		cancel()
		must.Do(t, <-done)
	})
}

func TestPreflightSaysWhatToDo(t *testing.T) {
	// Nothing listens on this port.
	if err := fmt.Sprint(preflight(t, "http://127.0.0.1:1")); !strings.Contains(err, "does not answer") ||
		!strings.Contains(err, "make cluster") {
		t.Errorf("nothing listens: got error %s, want a hint how to start a cluster", err)
	}
	for _, test := range []struct {
		code, lease int // of the answers, and of that about the Lease
		want        string
	}{
		{http.StatusNotFound, 0, "does not serve foos.example.com; kubectl apply -f crd.yaml"},
		{http.StatusUnauthorized, 0, "refuses the credentials"},
		{http.StatusOK, http.StatusForbidden, "--leader-elect-resource-namespace"},
		{http.StatusOK, http.StatusNotFound, "<nil>"}, // it does not exist yet
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			code := test.code
			if strings.HasSuffix(r.URL.Path, "/leases/test") {
				code = test.lease
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			_, _ = io.WriteString(w, `{"kind":"APIResourceList","resources":[]}`)
		}))
		defer server.Close()
		if err := fmt.Sprint(preflight(t, server.URL)); !strings.Contains(err, test.want) {
			t.Errorf("codes %d and %d: got error %s, want it to contain %q", test.code, test.lease, err,
				test.want)
		}
	}
}
