package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"example.com/sample-controller/examples/website/outside"
)

// What a client gets if its request did not reach the registry, or if the answer did not come back.
var errDown, errLost = errors.New("connection refused"), errors.New("connection reset")

// fakeRegistry is the way to a real registry, without a network.
type fakeRegistry struct {
	mu      sync.Mutex
	server  http.Handler
	down    error         // what requests get instead of an answer
	delay   time.Duration // of each answer
	methods []string      // of all requests
}

// RoundTrip answers a request, or lets it fail.
func (r *fakeRegistry) RoundTrip(request *http.Request) (*http.Response, error) {
	r.mu.Lock()
	delay := r.delay
	r.mu.Unlock()
	select {
	case <-time.After(delay):
	case <-request.Context().Done():
		return nil, request.Context().Err()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.methods = append(r.methods, request.Method)
	answer := httptest.NewRecorder()
	if !errors.Is(r.down, errDown) {
		r.server.ServeHTTP(answer, request)
	}
	if r.down != nil {
		return nil, fmt.Errorf("at %v: %w", time.Now().UnixNano(), r.down) // never the same text
	}
	return answer.Result(), nil
}

func newRegistry() *fakeRegistry { return &fakeRegistry{server: outside.NewServer()} }

// known returns what the registry knows, by UID.
func (r *fakeRegistry) known() (known map[string]outside.Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	answer := httptest.NewRecorder()
	r.server.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/entries", nil))
	if err := json.Unmarshal(answer.Body.Bytes(), &known); err != nil {
		panic(err)
	}
	return known
}

// fail makes requests fail with err, until that is nil.
func (r *fakeRegistry) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down = err
}

// answerAfter makes each answer take that long.
func (r *fakeRegistry) answerAfter(delay time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.delay = delay
}

// restart makes the registry lose everything.
func (r *fakeRegistry) restart() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.server = outside.NewServer()
}

// count returns how many requests with that method there were, and forgets them all.
func (r *fakeRegistry) count(method string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, got := range r.methods {
		if got == method {
			n++
		}
	}
	r.methods = nil
	return n
}
