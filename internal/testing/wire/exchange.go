package wire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httputil"
	"sync"
)

// exchange is a request and what becomes of it.
type exchange struct {
	p      *Proxy
	event  Event           // what all its events have
	ctx    context.Context // ends with the connection to the program
	cancel context.CancelCauseFunc

	// These are of a watch.
	watching    context.Context // ends with ctx, or when the watch expires
	expire      context.CancelCauseFunc
	since       string // the resourceVersion at which it begins
	sendInitial bool   // it begins with the initial list

	arrived, answered bool  // have been reported
	err               error // why there is no answer, or why the watch has ended
}

func newExchange(p *Proxy, r *http.Request) *exchange {
	query := r.URL.Query()
	x := &exchange{
		p: p, event: Requested(r), since: query.Get("resourceVersion"),
		sendInitial: query.Get("sendInitialEvents") == "true",
	}
	x.ctx, x.cancel = context.WithCancelCause(r.Context())
	x.watching, x.expire = context.WithCancelCause(x.ctx)
	return x
}

// rewrite addresses the request to the API server.
func (x *exchange) rewrite(r *httputil.ProxyRequest) {
	r.SetURL(x.p.target)
	if x.event.Verb == "watch" {
		r.Out.Header.Set("Accept-Encoding", "identity")
	}
}

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
	if !many && e.Resource != "" && isDecodable(response.Header) {
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

// peek returns what is in a body unless it is too large, and one from which the same can be read.
func peek(
	body io.ReadCloser, header http.Header,
) (c func() content, again io.ReadCloser, err error) {
	var data bytes.Buffer
	_, err = io.CopyN(&data, body, maxBody+1)
	if errors.Is(err, io.EOF) {
		err = nil
		all, mediaType, encoding := data.Bytes(), mediaType(header), header.Get("Content-Encoding")
		c = sync.OnceValue(func() content { return decode(all, mediaType, encoding) })
	}
	return c, struct {
		io.Reader
		io.Closer
	}{io.MultiReader(&data, body), body}, err
}
