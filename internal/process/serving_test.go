package process

import (
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
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"k8s.io/klog/v2"

	"example.com/sample-controller/internal/informers"
	"example.com/sample-controller/internal/metrics"
	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/process"
)

func TestServersLimitWhatAClientTakesUp(t *testing.T) {
	for name, test := range map[string]struct {
		server        *http.Server
		headers, rest time.Duration
		bytes         int
	}{
		"of metrics": {NewServer(nil), 10 * time.Second, 2 * time.Minute, 16384},
		"of probes":  {newProbeServer(nil, nil), 5 * time.Second, 5 * time.Second, 4096},
	} {
		s := test.server
		if s.ReadHeaderTimeout != test.headers || s.ReadTimeout != test.rest ||
			s.WriteTimeout != test.rest || s.MaxHeaderBytes != test.bytes {
			t.Errorf("%s: got %v, %v, %v, %d bytes; want %v, %v, %d bytes", name, s.ReadHeaderTimeout,
				s.ReadTimeout, s.WriteTimeout, s.MaxHeaderBytes, test.headers, test.rest, test.bytes)
		}
	}
}

func TestConnectionsBeyondTheLimitWait(t *testing.T) {
	var served atomic.Int32
	handler := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served.Add(1) })
	address := must.Get(process.FreeAddress())(t)
	must.Do(t, serve(t.Context(), "flag", address, NewServer(handler), 1, nil))
	first := &http.Client{Transport: &http.Transport{}}
	get := func() error {
		response, err := first.Get("http://" + address)
		if err != nil {
			return err
		}
		return response.Body.Close()
	}
	must.Do(t, get())
	waiting := must.Get(net.Dial("tcp", address))(t)
	must.Get(io.WriteString(waiting, "GET / HTTP/1.1\r\nHost: flag\r\n\r\n"))(t)
	for range 100 {
		must.Do(t, get()) // on the connection that it has kept
	}
	if got := served.Load(); got != 101 {
		t.Errorf("requests that were served: got %d, want the 101 of the first connection", got)
	}
	first.CloseIdleConnections()
	must.Get(io.ReadFull(waiting, make([]byte, 1)))(t)
}

// Strangers cannot fill the log. What a handler does wrong is logged.
func TestStrangersAreNotLogged(t *testing.T) {
	defer klog.CaptureState().Restore()
	var logged bytes.Buffer
	klog.LogToStderr(false)
	klog.SetOutput(&logged)
	address := must.Get(process.FreeAddress())(t)
	broken := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("broken") })
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	must.Do(t, err)
	pair := must.Get(tls.X509KeyPair(certificate, key))(t)
	config := &tls.Config{Certificates: []tls.Certificate{pair}}
	must.Do(t, serve(t.Context(), "flag", address, NewServer(broken), 1, config))
	stranger := must.Get(net.Dial("tcp", address))(t)
	must.Get(io.WriteString(stranger, "this is not TLS"))(t)
	_, _ = io.Copy(io.Discard, stranger)
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
	if response, err := client.Get("https://" + address); err == nil {
		response.Body.Close()
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

func TestServerRunsUntilTheContextIsDone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	address := must.Get(process.FreeAddress())(t)
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
	for path, handler := range map[string]http.Handler{
		"/healthz": probeHandler(healthy, broken), "/readyz": probeHandler(broken, healthy),
	} {
		for _, other := range []string{"/healthz", "/readyz"} {
			want := "503 not yet\n"
			if other == path {
				want = "200 ok\n"
			}
			recorder := httptest.NewRecorder()
			handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, other, nil))
			if got := fmt.Sprint(recorder.Code, " ", recorder.Body); got != want {
				t.Errorf("%s: got %q, want %q", other, got, want)
			}
		}
	}

	address := must.Get(process.FreeAddress())(t)
	o := &Options{HealthAddress: address, Metrics: metrics.Config{Address: "0"}}
	clients := must.Get(NewClients(&rest.Config{}, o))(t)
	p := &Process{Options: o, Clients: clients, Informers: &informers.Group{}} // with empty caches
	must.Do(t, p.startServers(t.Context()))
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 503} {
		response := must.Get(http.Get("http://" + address + path))(t)
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%s before the caches are filled: got %d, want %d", path, response.StatusCode, want)
		}
	}
}
