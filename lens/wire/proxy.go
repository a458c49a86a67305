package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// Proxy is an http.Handler that passes the requests of a program on to the API server, and the
// answers back. It changes neither, with one exception: it asks for JSON in place of Protobuf and
// CBOR, and without compression, because it must find where an event ends. While there is no API
// server, a program finds connections that end, in place of refused ones.
type Proxy struct {
	gate
	target *url.URL
	next   http.RoundTripper

	reporting sync.Mutex // while observe is called
	observe   func(Event)
	events    int // of watches, so far

	mu        sync.Mutex
	exchanges map[*exchange]bool
	requests  int // so far
	failNext  int // HTTP status of the next write, or 0
}

// New returns a Proxy to the API server of config, with the credentials of config. It calls observe
// for one Event after the other, before the program can notice what has happened. So observe must
// be quick.
//
// For faults that the methods do not offer, wrap the transport of config.
func New(config *rest.Config, observe func(Event)) (*Proxy, error) {
	target, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("reading the address of the API server: %w", err)
	}
	next, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("creating the transport to the API server: %w", err)
	}
	return &Proxy{
		gate:   gate{holds: map[string]time.Time{}, changed: make(chan struct{})},
		target: target, next: next, observe: observe,
		exchanges: map[*exchange]bool{},
	}, nil
}

// ServeHTTP passes one request on, and the answer back.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := newExchange(p, r)
	defer x.cancel(nil)
	defer p.end(x)
	proxy := httputil.ReverseProxy{
		Rewrite:   x.rewrite,
		Transport: x,
		ErrorLog:  log.New(io.Discard, "", 0),
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) {
			panic(http.ErrAbortHandler)
		},
	}
	proxy.ServeHTTP(w, r.WithContext(x.ctx))
}

func (p *Proxy) end(x *exchange) {
	p.leave(func(h *held) bool { return h.owner == x })
	x.reportEnd()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.exchanges, x)
}

// report tells the observer. If h is not nil, it enters the gate at the same time.
func (p *Proxy) report(e Event, h *held) Event {
	p.reporting.Lock()
	defer p.reporting.Unlock()
	if h != nil {
		p.enter(h)
	}
	if e.Kind == EventArrived {
		p.events++
		e.Number = p.events
	}
	e.At = time.Now()
	p.observe(e)
	return e
}

// exchange is a request and what becomes of it.
type exchange struct {
	p      *Proxy
	event  Event           // what all its events have
	ctx    context.Context // ends with the connection to the program
	cancel context.CancelCauseFunc

	// These are of a watch.
	watching    context.Context // ends with ctx, or when the watch expires
	expire      context.CancelCauseFunc
	sendInitial bool // it begins with the initial list

	arrived, answered bool  // have been reported
	err               error // why there is no answer, or why the watch has ended
}

// newExchange begins an exchange, and end ends it.
func newExchange(p *Proxy, r *http.Request) *exchange {
	x := &exchange{
		p: p, event: requested(r), sendInitial: r.URL.Query().Get("sendInitialEvents") == "true",
	}
	x.ctx, x.cancel = context.WithCancelCause(r.Context())
	x.watching, x.expire = context.WithCancelCause(x.ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.exchanges[x] = true
	p.requests++
	x.event.Request = p.requests
	return x
}

// rewrite addresses the request to the API server.
func (x *exchange) rewrite(r *httputil.ProxyRequest) {
	r.SetURL(x.p.target)
	r.Out.Header.Set("Accept-Encoding", "identity")
	r.Out.Header.Set("Accept", inJSON.Replace(r.In.Header.Get("Accept")))
}

var inJSON = strings.NewReplacer(
	runtime.ContentTypeProtobuf, runtime.ContentTypeJSON,
	runtime.ContentTypeCBORSequence, runtime.ContentTypeJSON,
	runtime.ContentTypeCBOR, runtime.ContentTypeJSON)

// RoundTrip waits until the request may pass, sends it to the API server, and returns the answer.
func (x *exchange) RoundTrip(r *http.Request) (response *http.Response, err error) {
	e, err := x.arrive(r)
	if err == nil {
		if code := x.p.fault(x); code != 0 {
			x.event.Injected = true
			response = failure(code)
		} else {
			e.Kind = RequestPassed
			x.p.report(e, nil)
			response, err = x.p.next.RoundTrip(r)
		}
	}
	if err != nil {
		x.err = err
		return nil, err
	}
	x.answer(response)
	return response, nil
}

// arrive reports the request, and returns when it may pass.
func (x *exchange) arrive(r *http.Request) (e Event, err error) {
	e = x.event
	e.Kind = RequestArrived
	if r.Body != nil {
		if e.content, r.Body, err = peek(r.Body, r.Header); err != nil {
			return e, err
		}
	}
	x.arrived = true
	if !e.mayBeHeld() {
		return x.p.report(e, nil), nil
	}
	h := &held{owner: x}
	return x.p.report(e, h), x.p.wait(x.ctx, h)
}

// answer reports the answer. That to a watch passes events only when they may.
func (x *exchange) answer(response *http.Response) {
	e := x.event
	e.Kind, e.Code = Answered, response.StatusCode
	many := response.StatusCode == http.StatusOK && (e.Verb == "watch" || e.Verb == "list")
	if !many && e.Resource != "" && mediaType(response.Header) == runtime.ContentTypeJSON {
		if e.content, response.Body, x.err = peek(response.Body, response.Header); x.err != nil {
			return // the program notices it when it reads the body
		}
	}
	x.answered = true
	x.p.report(e, nil)
	if many && e.Verb == "watch" {
		response.Body = newWatch(x, response)
	}
}

// reportEnd reports how the exchange has ended, if no other event does.
func (x *exchange) reportEnd() {
	e, err := x.event, x.err
	if cause := context.Cause(x.ctx); cause != nil {
		err = cause
	}
	e.Injected = e.Injected || errors.Is(err, errCut)
	switch {
	case errors.Is(err, context.Canceled):
		e.Reason = "the program closed the connection"
	case x.answered && errors.Is(err, io.EOF): // the API server has ended the watch
	case err != nil:
		e.Reason = err.Error()
	}
	if x.arrived && !x.answered {
		e.Kind = Answered
		x.p.report(e, nil)
	}
	if x.arrived && e.Verb == "watch" {
		e.Kind = WatchClosed
		x.p.report(e, nil)
	}
}

// peek returns what is in a body, and one from which the same can be read.
func peek(
	body io.ReadCloser, header http.Header,
) (c func() content, again io.ReadCloser, err error) {
	data, err := io.ReadAll(body)
	if err == nil {
		c = sync.OnceValue(func() content { return decode(data, mediaType(header)) })
	}
	return c, struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(data), body), body}, err
}
