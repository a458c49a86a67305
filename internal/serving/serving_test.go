package serving

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"example.com/sample-controller/internal/testing/freeport"
	"example.com/sample-controller/internal/testing/must"
)

func TestPortInUseSaysWhatToDo(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	address := listener.Addr().String()
	err = Start(t.Context(), "metrics-bind-address", address, http.NotFoundHandler(), nil)
	want := address + " is in use: choose another address with --metrics-bind-address, or 0 for none"
	if err == nil || err.Error() != want {
		t.Errorf("got error %v, want %q", err, want)
	}
}

func TestAddressZeroServesNothing(t *testing.T) {
	if err := Start(t.Context(), "metrics-bind-address", "0", nil, nil); err != nil {
		t.Errorf("got %v, want no error", err)
	}
}

func TestServerRunsUntilTheContextIsDone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	address := freeport.Address(t)
	handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		select {
		case <-r.Context().Done(): // the server closes its connections
		case <-time.After(time.Minute):
		}
	})
	must.Do(t, Start(ctx, "metrics-bind-address", address, handler, nil))
	response, err := http.Get("http://" + address)
	if err == nil {
		response.Body.Close()
		t.Errorf("got the answer %s, want the connection closed with the context", response.Status)
	}
	if ctx.Err() == nil {
		t.Error("the request did not reach the handler")
	}
}
