package faults

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"example.com/sample-controller/internal/wire"
)

// request is a request of the controller in a play.
type request struct {
	process int    // of the first process, the second one, ...
	what    string // such as update-foos-status-a; what is created has no name in its request
	nth     int    // of these in the process
}

func (r request) String() string {
	text := fmt.Sprintf("%s-%d", r.what, r.nth)
	if r.process > 1 {
		text = fmt.Sprintf("process-%d-%s", r.process, text)
	}
	return text
}

// isWrite reports whether the request writes a Foo or a Deployment.
func (r request) isWrite() bool {
	verb, resource, _ := strings.Cut(r.what, "-")
	return verb != "get" && verb != "list" && verb != "watch" && resource != "events"
}

// whatIs returns what several requests have in common.
func whatIs(e wire.Event) string {
	resource, _, _ := strings.Cut(e.Resource, ".")
	what := e.Verb + "-" + resource
	for _, more := range []string{e.Subresource, e.Name} {
		if more != "" {
			what += "-" + more
		}
	}
	return what
}

// witness is between one process of the controller and the API server. It notes each request. If
// the process is to die at one, it kills the process there.
type witness struct {
	*wire.Proxy
	url     string
	play    *play
	process int
	next    http.RoundTripper // to the API server

	// These are guarded by play.mu.
	times    map[string]int  // how often it has seen a request
	watching map[string]bool // the resources whose watch has begun
	dead     bool
}

// startWitness starts a witness of the next process.
func (p *play) startWitness() (w *witness, err error) {
	w = &witness{play: p, times: map[string]int{}, watching: map[string]bool{}}
	w.Proxy, w.url, err = serveProxy(p.t, func(next http.RoundTripper) http.RoundTripper {
		w.next = next
		return w
	})
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.witnesses = append(p.witnesses, w)
	w.process = len(p.witnesses)
	return w, nil
}

// WrappedRoundTripper is for wire.Proxy, which closes the connections in the end.
func (w *witness) WrappedRoundTripper() http.RoundTripper { return w.next }

// RoundTrip sends a request to the API server. Discovery and Leases are not noted.
func (w *witness) RoundTrip(r *http.Request) (*http.Response, error) {
	e := wire.Requested(r)
	if e.Resource == "" || strings.HasPrefix(e.Resource, "leases.") {
		return w.next.RoundTrip(r)
	}
	place, err := w.note(e)
	if err != nil {
		return nil, err // the proxy closes the connection
	}
	if place == before {
		w.die()
		return nil, errCut
	}
	response, err := w.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	w.noteAnswer(e, response.StatusCode)
	if place == after {
		if e.Verb != "watch" {
			_, _ = io.Copy(io.Discard, response.Body)
		}
		response.Body.Close()
		w.die()
		return nil, errCut
	}
	return response, nil
}

// note notes a request, and returns the place where the process is to die at it, if any. Of a dead
// process, nothing arrives.
func (w *witness) note(e wire.Event) (place string, err error) {
	p := w.play
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.dead {
		return "", errCut
	}
	what := whatIs(e)
	w.times[what]++
	r := request{process: w.process, what: what, nth: w.times[what]}
	p.requests = append(p.requests, r)
	if !p.crashed && r.String() == p.crash.request {
		p.crashed = true
		return p.crash.place, nil
	}
	return "", nil
}

// noteAnswer notes what the API server has done.
func (w *witness) noteAnswer(e wire.Event, code int) {
	p := w.play
	p.mu.Lock()
	defer p.mu.Unlock()
	succeeded := code < http.StatusMultipleChoices
	switch what := e.Verb + " " + e.Resource; {
	case succeeded && what == "create deployments.apps":
		p.created++
	case succeeded && what == "delete deployments.apps":
		p.deleted++
	case succeeded && e.Verb == "watch":
		w.watching[e.Resource] = true
	}
}

// die kills the process, unless that has happened. Then it is gone, and nothing of it arrives.
func (w *witness) die() {
	w.play.mu.Lock()
	died := w.dead
	w.dead = true
	w.play.mu.Unlock()
	if !died {
		<-w.play.supervisor.kill()
	}
}
