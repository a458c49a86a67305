package faults

import (
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/transport"

	"example.com/sample-controller/lens/wire"
)

// The share of requests that get a fault. It is larger for watches, because there are few.
const (
	faultRate      = 0.25
	watchFaultRate = 0.9
)

// errCut makes the proxy close the connection without an answer, or in the middle of one.
var errCut = errors.New("injected: connection cut")

// proxy stands between the controller and the API server. It adds random faults to those that a
// wire.Proxy offers.
type proxy struct {
	*wire.Proxy
	url  string
	next http.RoundTripper // to the API server

	mu     sync.Mutex
	random *rand.Rand
	on     bool
}

// startProxy starts a proxy that injects no faults yet.
func startProxy(t *testing.T, random *rand.Rand) *proxy {
	t.Helper()
	p := &proxy{random: random}
	p.Proxy, p.url = serveProxy(t, func(next http.RoundTripper) http.RoundTripper {
		p.next = next
		return p
	})
	return p
}

// serveProxy serves a proxy until the test ends. Its requests to the API server go through the
// transport that wrap returns.
func serveProxy(t *testing.T, wrap transport.WrapperFunc) (p *wire.Proxy, url string) {
	t.Helper()
	config, err := controlPlane.Config()
	if err != nil {
		t.Fatal(err)
	}
	config.Wrap(wrap)
	if p, err = wire.New(config, func(wire.Event) {}); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	t.Cleanup(p.Close)
	return p, server.URL
}

// inject switches the faults on or off.
func (p *proxy) inject(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.on = on
}

// RoundTrip sends a request to the API server, unless a fault prevents it.
func (p *proxy) RoundTrip(r *http.Request) (*http.Response, error) {
	watch := r.URL.Query().Get("watch") != ""
	p.mu.Lock()
	var fault string
	var much float64 // between 0 and 1
	if p.on && !strings.Contains(r.URL.Path, "/leases") {
		fault, much = p.draw(watch)
	}
	p.mu.Unlock()
	if fault != "" {
		total.count(faultPrefix + fault)
	}
	return p.with(fault, much, r)
}

// WrappedRoundTripper is for wire.Proxy, which closes the connections in the end.
func (p *proxy) WrappedRoundTripper() http.RoundTripper { return p.next }

// draw draws what happens to the next request.
func (p *proxy) draw(watch bool) (fault string, much float64) {
	rate, faults := faultRate, []string{"429", "500", "503", "cut before the request",
		"cut after the request", "cut in the answer", "slow"}
	if watch {
		rate, faults = watchFaultRate, []string{"429", "503", "cut before the request", "slow",
			"watch expired at once", "watch expired later", "watch cut", "watch cut", "watch cut"}
	}
	if fault := faults[p.random.IntN(len(faults))]; p.random.Float64() < rate {
		return fault, p.random.Float64()
	}
	return "", 0
}

// with sends the request with that fault.
func (p *proxy) with(fault string, much float64, r *http.Request) (*http.Response, error) {
	switch fault {
	case "429":
		return wire.Failure(http.StatusTooManyRequests, false), nil
	case "500":
		return wire.Failure(http.StatusInternalServerError, false), nil
	case "503":
		return wire.Failure(http.StatusServiceUnavailable, false), nil
	case "watch expired at once":
		return wire.Failure(http.StatusGone, false), nil
	case "watch expired later":
		return wire.Failure(http.StatusGone, true), nil
	case "cut before the request":
		return nil, errCut
	case "slow":
		time.Sleep(time.Duration(much * float64(300*time.Millisecond)))
	}
	response, err := p.next.RoundTrip(r)
	if err != nil {
		return nil, err // the proxy closes the connection
	}
	switch fault {
	case "cut after the request": // the write has happened
		_, _ = io.Copy(io.Discard, response.Body)
		response.Body.Close()
		return nil, errCut
	case "cut in the answer":
		n := int64(much * float64(max(response.ContentLength, 0)))
		response.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(io.LimitReader(response.Body, n), cutReader{}), response.Body}
	case "watch cut":
		time.AfterFunc(time.Duration(much*float64(2*time.Second)), func() { response.Body.Close() })
	}
	return response, nil
}

// cutReader always fails.
type cutReader struct{}

func (cutReader) Read([]byte) (int, error) { return 0, errCut }
