package serving

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/klog/v2"

	"example.com/sample-controller/internal/testing/freeport"
	"example.com/sample-controller/internal/testing/must"
)

// pipes is a listener without a network: in a bubble, its connections know only virtual time.
type pipes struct {
	connections chan net.Conn
	closed      chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case connection := <-p.connections:
		return connection, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error   { close(p.closed); return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{} }

func TestSlowClientsAreDisconnected(t *testing.T) {
	const headers = "GET / HTTP/1.1\r\nHost: a\r\n"
	for sends, until := range map[string]time.Duration{
		"":                                    10 * time.Second,
		headers:                               10 * time.Second,
		headers + "Content-Length: 9\r\n\r\n": 2 * time.Minute,
		headers + "\r\n":                      2 * time.Minute, // for a next request
	} {
		closes(t, NewServer(http.NotFoundHandler()), sends, until)
		closes(t, newProbeServer(http.NotFoundHandler()), sends, 5*time.Second)
	}
}

// closes fails t unless server closes the connection of a client that sends this in time.
func closes(t *testing.T, server *http.Server, sends string, until time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		listener := pipes{connections: make(chan net.Conn), closed: make(chan struct{})}
		go func() { _ = server.Serve(listener) }()
		defer server.Close()
		client, accepted := net.Pipe()
		defer client.Close()
		start := time.Now()
		listener.connections <- accepted
		go func() { _, _ = io.WriteString(client, sends) }()
		_, _ = io.Copy(io.Discard, client)
		if took := time.Since(start); took > until+time.Second {
			t.Errorf("after %q, the connection was closed after %v, want %v", sends, took, until)
		}
	})
}

// Strangers hold as many connections as there may be. A probe is answered at once.
func TestProbeDoesNotWaitForStrangers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listener := pipes{connections: make(chan net.Conn), closed: make(chan struct{})}
		server := newProbeServer(http.NotFoundHandler())
		go func() { _ = server.Serve(keepNewest(listener)) }()
		defer server.Close()
		start := time.Now()
		var ended atomic.Int32
		for range maxProbes + 9 {
			stranger, accepted := net.Pipe()
			defer stranger.Close()
			listener.connections <- accepted
			go func() {
				_, _ = io.Copy(io.Discard, stranger)
				ended.Add(1)
			}()
		}
		kubelet, accepted := net.Pipe()
		defer kubelet.Close()
		listener.connections <- accepted
		if err := get(kubelet); err != nil || time.Since(start) > 0 {
			t.Errorf("got %v after %v, want an answer at once", err, time.Since(start))
		}
		synctest.Wait()
		if got := ended.Load(); got != 10 {
			t.Errorf("connections of strangers that ended: got %d, want the oldest 10", got)
		}
	})
}

// get sends a request and reads the answer. The connection stays open.
func get(connection net.Conn) error {
	if _, err := fmt.Fprint(connection, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		return err
	}
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return err
}

func newCertificate(t *testing.T) tls.Certificate {
	t.Helper()
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	must.Do(t, err)
	return must.Get(tls.X509KeyPair(certificate, key))(t)
}

func TestConnectionsBeyondTheLimitWait(t *testing.T) {
	pair := newCertificate(t)
	var served atomic.Int32
	config := &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		served.Add(1)
		return &pair, nil
	}}
	address := freeport.Address(t)
	must.Do(t, Start(t.Context(), "flag", address, http.NotFoundHandler(), config))
	answers := make(chan error, maxConnections+10)
	open := make([]net.Conn, maxConnections+10)
	dial := func(i int) {
		connection := must.Get(net.Dial("tcp", address))(t)
		t.Cleanup(func() { connection.Close() })
		open[i] = connection
		go func() {
			answers <- get(tls.Client(connection, &tls.Config{InsecureSkipVerify: true}))
		}()
	}
	for i := range maxConnections {
		dial(i)
	}
	for range maxConnections {
		must.Do(t, <-answers)
	}
	for i := range 10 {
		dial(maxConnections + i)
	}

	open[0].Close()

	if err := <-answers; err != nil { // one of those that wait
		t.Error(err)
	}
	if got := served.Load(); got != maxConnections+1 {
		t.Errorf("connections that were served: got %d, want %d, since one is closed", got,
			maxConnections+1)
	}
}

// Strangers cannot fill the log. What a handler does wrong is logged.
func TestStrangersAreNotLogged(t *testing.T) {
	defer klog.CaptureState().Restore()
	var logged bytes.Buffer
	klog.LogToStderr(false)
	klog.SetOutput(&logged)
	address := freeport.Address(t)
	broken := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("broken") })
	config := &tls.Config{Certificates: []tls.Certificate{newCertificate(t)}}
	must.Do(t, Start(t.Context(), "flag", address, broken, config))
	stranger := must.Get(net.Dial("tcp", address))(t)
	must.Get(io.WriteString(stranger, "this is not TLS"))(t)
	_, _ = io.Copy(io.Discard, stranger)
	client := must.Get(tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true}))(t)
	if err := get(client); err == nil {
		t.Error("a broken handler has answered")
	}
	klog.Flush()
	if got := logged.String(); strings.Contains(got, "handshake") || !strings.Contains(got, "broken") {
		t.Errorf("logged: %s", got)
	}
}

func TestPortInUseSaysWhatToDo(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must.Do(t, err)
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
