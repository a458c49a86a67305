package outside

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/sample-controller/internal/testing/must"
)

// serve returns a client of a server.
func serve(t *testing.T, handler http.Handler) *Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return must.Get(NewClient(server.URL, nil))(t)
}

func TestRefusalIsAnErrorThatSaysWhy(t *testing.T) {
	err := serve(t, NewServer()).Put(t.Context(), "1", Entry{Name: "without URL"})

	const want = "400 Bad Request: want an entry with a url, in JSON"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got error %v, want it to contain %q", err, want)
	}
}

func TestOnlySuccessIsSuccess(t *testing.T) {
	mux := http.NewServeMux()
	mux.Handle("/entries/moved", http.RedirectHandler("/login", http.StatusFound))
	mux.HandleFunc("/login", func(http.ResponseWriter, *http.Request) {}) // 200 OK
	c := serve(t, mux)
	// A proxy may answer 404 while the registry is replaced, which still knows the entry.
	for _, id := range []string{"moved", "unknown"} {
		if c.Put(t.Context(), id, Entry{URL: "http://web"}) == nil || c.Delete(t.Context(), id) == nil {
			t.Errorf("%s: got no error, want one", id)
		}
	}
}

// hangs answers no request.
type hangs struct{}

func (hangs) RoundTrip(request *http.Request) (*http.Response, error) {
	<-request.Context().Done()
	return nil, request.Context().Err()
}

func TestRegistryThatHangsIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := must.Get(NewClient("http://registry", hangs{}))(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begin := time.Now()

		if err := c.Delete(ctx, "1"); err == nil || time.Since(begin) != 2*time.Second {
			t.Errorf("got error %v after %v, want one after 2s", err, time.Since(begin))
		}
	})
}

func TestOnlyAnHTTPServerIsARegistry(t *testing.T) {
	for _, base := range []string{"", "127.0.0.1:8090", "ftp://registry", "http:///entries"} {
		if _, err := NewClient(base, nil); err == nil {
			t.Errorf("%q was accepted", base)
		}
	}
}
