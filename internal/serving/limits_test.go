package serving

import (
	"bufio"
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

	"example.com/sample-controller/internal/freeport"
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
func connected(t *testing.T, test func(t *testing.T, client net.Conn)) {
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
			connected(t, func(t *testing.T, connection net.Conn) {
				start, closed := time.Now(), make(chan struct{})
				go func() {
					defer close(closed)
					if client.reads {
						_, _ = io.Copy(io.Discard, connection)
						return
					}
					<-time.After(time.Second)
					_, _ = io.WriteString(connection, "two bytes, of which the server reads one")
				}()
				_, err := io.WriteString(connection, client.sends)
				for err == nil && client.drips {
					time.Sleep(time.Second)
					_, err = io.WriteString(connection, "a")
				}
				<-closed
				took := time.Since(start)
				if took > client.until+time.Second {
					t.Errorf("the server closed the connection after %v, want %v", took, client.until)
				}
			})
		})
	}
}

func TestHeadersThatAreTooLongAreRefused(t *testing.T) {
	connected(t, func(t *testing.T, client net.Conn) {
		go func() {
			_, _ = io.WriteString(client, "GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ")
			_, _ = io.WriteString(client, strings.Repeat("a", 32<<10)+"\r\n\r\n")
		}()
		response, err := http.ReadResponse(bufio.NewReader(client), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("got code %d, want 431", response.StatusCode)
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
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	var served atomic.Int32
	config := &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		served.Add(1)
		return &pair, nil
	}}
	address := freeport.Address(t)
	if err := Start(t.Context(), "flag", address, http.NotFoundHandler(), config); err != nil {
		t.Fatal(err)
	}
	answers := make(chan error, maxConnections+10)
	open := make([]net.Conn, maxConnections+10)
	dial := func(i int) {
		connection, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
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
		if err := <-answers; err != nil {
			t.Fatal(err)
		}
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
