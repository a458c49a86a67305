package wire

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// Proxy is an http.Handler that passes the requests of a program on to the API server, and the
// answers back. It changes neither, with one exception: it asks for watches without compression,
// because it cannot hold one event of a compressed watch.
type Proxy struct {
	gate
	target  *url.URL
	next    http.RoundTripper
	running sync.WaitGroup // all exchanges

	reporting sync.Mutex // while observe is called
	observe   func(Event)
	events    int // of watches, so far

	mu        sync.Mutex
	exchanges map[*exchange]bool
	requests  int // so far
	closed    bool
	failNext  int             // HTTP status of the next write, or 0
	expired   map[string]bool // resources whose next watch cannot begin at a resourceVersion
}

// New returns a Proxy to the API server of config, with the credentials of config. It calls observe
// for one Event after the other, before the program can notice what has happened. So observe must
// be quick. It may call all methods except Close.
//
// For faults that the methods do not offer, wrap the transport of config.
func New(config *rest.Config, observe func(Event)) (*Proxy, error) {
	config = rest.CopyConfig(config)
	config.DisableCompression = true // unless the program asks for it
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
		exchanges: map[*exchange]bool{}, expired: map[string]bool{},
	}, nil
}

// ServeHTTP passes one request on, and the answer back.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := newExchange(p, r)
	defer x.cancel(nil)
	if !p.begin(x) {
		panic(http.ErrAbortHandler) // closes the connection
	}
	defer p.end(x)
	stop := context.AfterFunc(x.ctx, func() { // a program that is frozen reads and sends nothing
		connection := http.NewResponseController(w)
		_ = connection.SetReadDeadline(time.Now())
		_ = connection.SetWriteDeadline(time.Now())
	})
	defer stop()
	proxy := httputil.ReverseProxy{
		Rewrite:    x.rewrite,
		Transport:  x,
		BufferPool: bufferPool{},
		ErrorLog:   log.New(io.Discard, "", 0),
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) {
			panic(http.ErrAbortHandler)
		},
	}
	proxy.ServeHTTP(w, r.WithContext(x.ctx))
}

// Close ends all requests and waits until they have ended. The Proxy refuses any others.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	for x := range p.exchanges {
		x.cancel(errClosed)
	}
	p.mu.Unlock()
	p.running.Wait()
	utilnet.CloseIdleConnectionsFor(p.next)
}

func (p *Proxy) begin(x *exchange) (ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.running.Add(1)
	p.exchanges[x] = true
	p.requests++
	x.event.Request = p.requests
	return true
}

func (p *Proxy) end(x *exchange) {
	p.leave(func(h *held) bool { return h.owner == x })
	x.reportEnd()
	p.mu.Lock()
	delete(p.exchanges, x)
	p.mu.Unlock()
	p.running.Done()
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

// buffers are those in which bodies are copied: a new one for each request would be most of what a
// request allocates.
var buffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

type bufferPool struct{}

func (bufferPool) Get() []byte  { return buffers.Get().(*[32 << 10]byte)[:] }
func (bufferPool) Put(b []byte) { buffers.Put((*[32 << 10]byte)(b)) }
