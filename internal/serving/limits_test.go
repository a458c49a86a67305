package serving

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

// connected runs test in a bubble, with a connection to a server that answers with 1 MiB.
func connected(
	t *testing.T, newServer func(http.Handler) *http.Server, test func(t *testing.T, client net.Conn),
) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		listener := pipes{connections: make(chan net.Conn), closed: make(chan struct{})}
		server := newServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, strings.Repeat("a", 1<<20))
		}))
		go func() { _ = server.Serve(listener) }()
		client, accepted := net.Pipe()
		defer func() {
			client.Close()
			server.Close()
			time.Sleep(time.Second) // virtual: the server gives a refused client half a second to read
		}()
		listener.connections <- accepted
		test(t, client)
	})
}

func TestSlowClientsAreDisconnected(t *testing.T) {
	const begin, length = "GET / HTTP/1.1\r\nHost: a\r\n", "Content-Length: 999\r\n\r\n"
	for name, client := range map[string]struct {
		sends string // at once
		drips bool   // sends another byte each second
		reads bool
		until time.Duration
	}{
		"it sends nothing":                {"", false, true, 10 * time.Second},
		"its headers never end":           {begin + "X: ", true, true, 10 * time.Second},
		"its body does not come":          {begin + length, false, true, 2 * time.Minute},
		"its body never ends":             {begin + length, true, true, 2 * time.Minute},
		"it does not read the answer":     {begin + "\r\n", false, false, 2 * time.Minute},
		"it does not send a next request": {begin + "\r\n", false, true, 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			test := func(until time.Duration) func(*testing.T, net.Conn) {
				return func(t *testing.T, connection net.Conn) {
					takesUntil(t, connection, client.sends, client.drips, client.reads, until)
				}
			}
			connected(t, NewServer, test(client.until))
			connected(t, newProbeServer, test(5*time.Second))
		})
	}
}

// takesUntil fails unless the server closes the connection of such a client in time.
func takesUntil(
	t *testing.T, connection net.Conn, sends string, drips, reads bool, until time.Duration,
) {
	start, closed := time.Now(), make(chan struct{})
	go func() {
		defer close(closed)
		if reads {
			_, _ = io.Copy(io.Discard, connection)
			return
		}
		<-time.After(time.Second)
		_, _ = io.WriteString(connection, "two bytes, of which the server reads one")
	}()
	_, err := io.WriteString(connection, sends)
	for err == nil && drips {
		time.Sleep(time.Second)
		_, err = io.WriteString(connection, "a")
	}
	<-closed
	if took := time.Since(start); took > until+time.Second {
		t.Errorf("the server closed the connection after %v, want %v", took, until)
	}
}

func TestHeadersThatAreTooLongAreRefused(t *testing.T) {
	test := func(size int) func(*testing.T, net.Conn) {
		return func(t *testing.T, client net.Conn) {
			go func() {
				_, _ = io.WriteString(client, "GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ")
				_, _ = io.WriteString(client, strings.Repeat("a", size)+"\r\n\r\n")
			}()
			response := must.Get(http.ReadResponse(bufio.NewReader(client), nil))(t)
			defer response.Body.Close()
			if response.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
				t.Errorf("%d bytes: got code %d, want 431", size, response.StatusCode)
			}
		}
	}
	connected(t, NewServer, test(32<<10))
	connected(t, newProbeServer, test(12<<10))
}

func TestProbeEndsItsConnection(t *testing.T) {
	connected(t, newProbeServer, func(t *testing.T, client net.Conn) {
		start := time.Now()
		must.Do(t, get(client))
		if _, err := client.Read(make([]byte, 1)); !errors.Is(err, io.EOF) || time.Since(start) > time.Second {
			t.Errorf("got %v after %v, want the connection closed", err, time.Since(start))
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
