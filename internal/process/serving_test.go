package process

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
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
		closes(t, newProbeServer(nil, nil), sends, 5*time.Second)
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

func TestConnectionsBeyondTheLimitWait(t *testing.T) {
	const limit = 3
	var served atomic.Int32
	handler := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served.Add(1) })
	address := freeport.Address(t)
	must.Do(t, serve(t.Context(), "flag", address, NewServer(handler), limit, nil))
	dial := func() net.Conn {
		connection := must.Get(net.Dial("tcp", address))(t)
		t.Cleanup(func() { connection.Close() })
		return connection
	}
	first := dial()
	for _, connection := range []net.Conn{first, dial(), dial()} {
		must.Do(t, get(connection))
	}
	answers := make(chan error, 10)
	for range 10 {
		waiting := dial()
		go func() { answers <- get(waiting) }()
	}

	first.Close()

	must.Do(t, <-answers) // of one of those that wait
	if got := served.Load(); got != limit+1 {
		t.Errorf("connections that were served: got %d, want %d, since one is closed", got, limit+1)
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
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	must.Do(t, err)
	pair := must.Get(tls.X509KeyPair(certificate, key))(t)
	config := &tls.Config{Certificates: []tls.Certificate{pair}}
	must.Do(t, serve(t.Context(), "flag", address, NewServer(broken), 1, config))
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
	err = serve(t.Context(), "metrics-bind-address", address, NewServer(nil), 1, nil)
	want := address + " is in use: choose another address with --metrics-bind-address, or 0 for none"
	if err == nil || err.Error() != want {
		t.Errorf("got error %v, want %q", err, want)
	}
}

func TestAddressZeroServesNothing(t *testing.T) {
	if err := serve(t.Context(), "metrics-bind-address", "0", nil, 1, nil); err != nil {
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
	must.Do(t, serve(ctx, "metrics-bind-address", address, NewServer(handler), 1, nil))
	response, err := http.Get("http://" + address)
	if err == nil {
		response.Body.Close()
		t.Errorf("got the answer %s, want the connection closed with the context", response.Status)
	}
	if ctx.Err() == nil {
		t.Error("the request did not reach the handler")
	}
}

func TestEachProbeFollowsItsCheck(t *testing.T) {
	healthy := func(*http.Request) error { return nil }
	broken := func(*http.Request) error { return errors.New("not yet") }
	for _, test := range []struct {
		healthy, ready          Check
		wantHealthz, wantReadyz int
	}{
		{healthy, broken, http.StatusOK, http.StatusServiceUnavailable},
		{broken, healthy, http.StatusServiceUnavailable, http.StatusOK},
	} {
		handler := probeHandler(test.healthy, test.ready)
		for path, want := range map[string]int{
			"/healthz": test.wantHealthz, "/readyz": test.wantReadyz,
		} {
			recorder := httptest.NewRecorder()
			handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, nil))
			if recorder.Code != want {
				t.Errorf("%s: got code %d, want %d", path, recorder.Code, want)
			}
			if got := recorder.Body.String(); want != http.StatusOK && got != "not yet\n" {
				t.Errorf(`%s: got body %q, want the error "not yet"`, path, got)
			}
		}
	}
}
