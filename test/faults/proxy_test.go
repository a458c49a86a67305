package faults

import (
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// The share of requests that get a fault. It is larger for watches, because there are few.
const (
	faultRate      = 0.25
	watchFaultRate = 0.9
)

// errCut makes the proxy close the connection without an answer, or in the middle of one.
var errCut = errors.New("injected: connection cut")

// proxy stands between the controller and the API server.
type proxy struct {
	next http.RoundTripper
	url  string

	mu      sync.Mutex
	random  *rand.Rand
	on      bool
	hidden  string                 // the end of the path that cannot be read, if any
	watches map[io.ReadCloser]bool // the open ones
}

// startProxy starts a proxy that injects no faults yet.
func startProxy(t *testing.T, random *rand.Rand) *proxy {
	t.Helper()
	config, err := controlPlane.Config()
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{random: random, watches: map[io.ReadCloser]bool{}}
	if p.next, err = rest.TransportFor(config); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     p,
		FlushInterval: -1, // at once
		ErrorLog:      log.New(io.Discard, "", 0),
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) {
			panic(http.ErrAbortHandler) // closes the connection
		},
	})
	t.Cleanup(server.CloseClientConnections)
	p.url = server.URL
	return p
}

// inject switches the faults on or off.
func (p *proxy) inject(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.on = on
}

// hide cuts all watches, and makes the resource unreadable until hide(""). After that, an informer
// has to list, which does not show what came and went meanwhile.
func (p *proxy) hide(resource string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hidden = resource
	for watch := range p.watches {
		watch.Close()
	}
}

// RoundTrip sends a request to the API server, unless a fault prevents it.
func (p *proxy) RoundTrip(r *http.Request) (*http.Response, error) {
	watch := r.URL.Query().Get("watch") != ""
	p.mu.Lock()
	hidden := p.hidden != "" && r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, p.hidden)
	var fault string
	var much float64 // between 0 and 1
	if p.on && !strings.Contains(r.URL.Path, "/leases") {
		fault, much = p.draw(watch)
	}
	p.mu.Unlock()
	if hidden {
		total.count(faultPrefix + "read of a hidden resource")
		return answer(r, http.StatusGone, "Expired", ""), nil
	}
	if fault != "" {
		total.count(faultPrefix + fault)
	}
	response, err := p.with(fault, much, r)
	if err == nil && watch {
		response.Body = p.tracked(response.Body)
	}
	return response, err
}

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
		return answer(r, http.StatusTooManyRequests, "TooManyRequests", ""), nil
	case "500":
		return answer(r, http.StatusInternalServerError, "InternalError", ""), nil
	case "503":
		return answer(r, http.StatusServiceUnavailable, "ServiceUnavailable", ""), nil
	case "watch expired at once":
		return answer(r, http.StatusGone, "Expired", ""), nil
	case "watch expired later":
		return answer(r, http.StatusGone, "Expired", "ERROR"), nil
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

// answer returns an error as the API server does: as the answer, or as an event of that type in a
// watch.
func answer(r *http.Request, code int, reason, event string) *http.Response {
	body := fmt.Sprintf(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": %d,`+
		`"reason": %q, "message": "injected", "details": {"retryAfterSeconds": 1}}`, code, reason)
	if event != "" {
		body = fmt.Sprintf(`{"type": %q, "object": %s}`, event, body)
		code = http.StatusOK
	}
	response := &http.Response{
		StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header:        http.Header{"Content-Type": {"application/json"}},
		Body:          io.NopCloser(strings.NewReader(body)),
		ContentLength: int64(len(body)),
	}
	if code == http.StatusTooManyRequests {
		response.Header.Set("Retry-After", "1")
	}
	return response
}

// watchBody is the body of a watch, which the proxy knows until it is closed.
type watchBody struct {
	io.ReadCloser
	p *proxy
}

// tracked returns the body of a watch so that the proxy can cut the watch.
func (p *proxy) tracked(body io.ReadCloser) io.ReadCloser {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watches[body] = true
	return watchBody{body, p}
}

// Close ends the watch.
func (b watchBody) Close() error {
	b.p.mu.Lock()
	defer b.p.mu.Unlock()
	delete(b.p.watches, b.ReadCloser)
	return b.ReadCloser.Close()
}
