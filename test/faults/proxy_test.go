package faults

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"example.com/sample-controller/internal/testing/must"
)

// The share of requests that get a fault. It is larger for watches, because there are few.
const (
	faultRate      = 0.25
	watchFaultRate = 0.9
)

// errCut makes the proxy close the connection without an answer, or in the middle of one.
var errCut = errors.New("injected: connection cut")

// proxy stands between the controller and the API server, and injects faults.
type proxy struct {
	url  string
	next http.RoundTripper // to the API server

	mu     sync.Mutex
	random *rand.Rand
	on     bool
	faults int // so far
}

// startProxy starts a proxy that injects no faults yet. It serves until the test ends. If RoundTrip
// returns an error, the connection is closed.
func startProxy(t *testing.T, random *rand.Rand) *proxy {
	t.Helper()
	config := controlPlane.Config
	target, _, err := rest.DefaultServerUrlFor(config)
	must.Do(t, err)
	p := &proxy{next: must.Get(rest.TransportFor(config))(t), random: random}
	server := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     p,
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) {
			panic(http.ErrAbortHandler)
		},
	})
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	p.url = server.URL
	return p
}

// inject switches the faults on or off, and returns how many there were so far.
func (p *proxy) inject(on bool) (faults int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.on = on
	return p.faults
}

// draw returns the fault of a request, if it gets one, and how much of it, between 0 and 1.
func (p *proxy) draw(r *http.Request) (fault string, much float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.on || strings.Contains(r.URL.Path, "/leases") {
		return "", 0
	}
	rate, faults := faultRate, []string{"429", "500", "503", "cut before the request",
		"cut after the request", "cut in the answer", "slow"}
	if r.URL.Query().Get("watch") != "" {
		rate, faults = watchFaultRate, []string{"429", "503", "410", "cut before the request", "slow",
			"watch expired later", "watch cut", "watch cut", "watch cut"}
	}
	if fault := faults[p.random.IntN(len(faults))]; p.random.Float64() < rate {
		p.faults++
		return fault, p.random.Float64()
	}
	return "", 0
}

// RoundTrip sends a request to the API server, unless a fault prevents it.
func (p *proxy) RoundTrip(r *http.Request) (*http.Response, error) {
	fault, much := p.draw(r)
	if code, err := strconv.Atoi(fault); err == nil {
		return failure(code, false), nil
	}
	switch fault {
	case "watch expired later":
		return failure(http.StatusGone, true), nil
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
		}{io.MultiReader(io.LimitReader(response.Body, n), iotest.ErrReader(errCut)), response.Body}
	case "watch cut":
		time.AfterFunc(time.Duration(much*float64(2*time.Second)), func() { response.Body.Close() })
	}
	return response, nil
}

// failure returns the answer of an API server that fails with that HTTP status. In a watch that has
// begun, the status is that of an ERROR event.
func failure(code int, inWatch bool) *http.Response {
	status := apierrors.NewGenericServerResponse(
		code, "", schema.GroupResource{}, "", "injected", 1, false).ErrStatus
	if code == http.StatusGone { // NewGenericServerResponse does not know it
		status.Reason = metav1.StatusReasonExpired
	}
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	body, _ := json.Marshal(status) // never fails
	response := &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}},
	}
	switch {
	case inWatch:
		response.StatusCode = http.StatusOK
		body = fmt.Appendf(nil, `{"type": "ERROR", "object": %s}`+"\n", body)
	case code == http.StatusTooManyRequests:
		response.Header.Set("Retry-After", "1")
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response
}
