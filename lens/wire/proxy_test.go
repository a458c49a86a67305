package wire

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"example.com/sample-controller/internal/testing/must"
)

func TestRequestsPass(t *testing.T) {
	for _, mediaType := range []string{jsonType, protobufType} {
		t.Run(mediaType, func(t *testing.T) {
			sent := encode(t, mediaType, deployment("b", ""))
			stored := encode(t, mediaType, deployment("b", "7"))
			l := startLine(t, func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil || !bytes.Equal(body, sent) || r.URL.RawQuery != "dryRun=All" {
					t.Errorf("got %s %s with %q, %v", r.Method, r.URL, body, err)
				}
				w.Header().Set("Content-Type", mediaType)
				w.WriteHeader(http.StatusCreated)
				_, _ = w.Write(stored)
			})

			response := must.Get(l.do(http.MethodPost, deploymentsPath+"?dryRun=All", mediaType, sent))(t)
			defer response.Body.Close()
			l.wantNext(response.Body, stored)
			if response.StatusCode != http.StatusCreated {
				t.Errorf("got %s, want 201", response.Status)
			}

			object := Object{Resource: "deployments.apps", Kind: "Deployment", Namespace: "a", Name: "b",
				Summary: "no status yet"}
			want := Event{Request: 1, Verb: "create", Version: "v1", Resource: "deployments.apps",
				Namespace: "a", Object: &object}
			for i, got := range l.await(3, func(Event) bool { return true }) {
				want.Kind = []Kind{RequestArrived, RequestPassed, Answered}[i]
				if want.Kind == Answered {
					object.ResourceVersion, want.Code = "7", 201
				}
				if got.At.Before(want.At) {
					t.Errorf("event %d is earlier than the one before", i)
				}
				if want.At = got.At; !reflect.DeepEqual(got, want) {
					t.Errorf("event %d: got %+v (%+v), want %+v (%+v)", i, got, got.Object, want, object)
				}
			}
		})
	}
}

func TestCompressedAnswerIsReadAndStaysCompressed(t *testing.T) {
	var compressed bytes.Buffer
	writer := gzip.NewWriter(&compressed)
	_, _ = writer.Write(encode(t, jsonType, deployment("b", "7")))
	writer.Close()
	l := startLine(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", jsonType)
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(compressed.Bytes())
	})
	if _, body := l.get(deploymentsPath + "/b"); body != compressed.String() {
		t.Errorf("got %q, want %q", body, compressed.String())
	}
	answer := l.awaitKind(1, Answered)[0]
	if answer.Object == nil || answer.Object.ResourceVersion != "7" {
		t.Errorf("got %+v, want the Deployment", answer)
	}
}

// What the program did not ask for is not asked for.
func TestNothingIsCompressedUnasked(t *testing.T) {
	api := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("Accept-Encoding"))
	}))
	defer api.Close()
	p := must.Get(New(&rest.Config{
		Host: api.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true},
	}, func(Event) {}))(t)
	defer p.Close()
	r := httptest.NewRequest(http.MethodGet, deploymentsPath, nil)
	answer := httptest.NewRecorder()
	p.ServeHTTP(answer, r)
	if got := answer.Body.String(); answer.Code != http.StatusOK || got != "" {
		t.Errorf("got %d, asked for %q, want nothing", answer.Code, got)
	}
}

func TestLargeBodiesPassUnread(t *testing.T) {
	large := deployment("b", "7")
	large.Annotations = map[string]string{"long": strings.Repeat("long", maxBody/4)}
	sent := encode(t, jsonType, large)
	l := startLine(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", jsonType)
		_, _ = io.Copy(w, r.Body)
	})
	response := must.Get(l.do(http.MethodPut, deploymentsPath+"/b", jsonType, sent))(t)
	defer response.Body.Close()
	l.wantNext(response.Body, sent)
	for _, e := range l.await(3, func(Event) bool { return true }) {
		if e.Object != nil {
			t.Errorf("%s: got %+v, want no object", e.Kind, e.Object)
		}
	}
}

func TestHeldRequestIsNotPassed(t *testing.T) {
	passed := make(chan string, 10)
	l := startLine(t, func(_ http.ResponseWriter, r *http.Request) { passed <- r.URL.Path })
	l.Pause()
	first := l.start(http.MethodPost, deploymentsPath)
	l.awaitKind(1, RequestArrived)
	second := l.start(http.MethodDelete, deploymentsPath+"/b")
	l.awaitKind(2, RequestArrived)

	// These are not held.
	for _, path := range []string{"/version", "/apis/apps/v1", leasesPath, leasesPath + "/b"} {
		l.get(path)
		if got := received(passed); got != path {
			t.Errorf("%q has passed, want %s", got, path)
		}
	}

	l.wantWaiting(2)
	l.Step()
	if err := <-first; err != nil {
		t.Error(err)
	}
	l.wantWaiting(1)
	l.Open()
	if err := <-second; err != nil {
		t.Error(err)
	}
	l.wantWaiting(0)
}

func TestClientThatGoesAwayWaitsNoMore(t *testing.T) {
	l := startLine(t, func(http.ResponseWriter, *http.Request) { t.Error("the request has passed") })
	l.Pause()
	ctx, cancel := context.WithCancel(t.Context())
	body := strings.NewReader(`[{"op": "remove", "path": "/spec"}]`)
	r := must.Get(http.NewRequestWithContext(
		ctx, http.MethodPatch, l.address+deploymentsPath+"/b", body))(t)
	r.Header.Set("Content-Type", "application/json-patch+json")
	go func() {
		if response, err := l.client().Do(r); err == nil {
			response.Body.Close()
		}
	}()
	l.awaitKind(1, RequestArrived)
	cancel()

	answer := l.awaitKind(1, Answered)[0]
	if answer.Code != 0 || answer.Reason != "the program closed the connection" {
		t.Errorf("got %+v, want no answer", answer)
	}
	l.wantWaiting(0)
	if kinds := l.kinds(); slices.Contains(kinds, RequestPassed) {
		t.Errorf("got %v, want that nothing passed", kinds)
	}
}

func TestObserverMayCallTheProxy(t *testing.T) {
	api := startLine(t, func(http.ResponseWriter, *http.Request) {})
	var p *Proxy
	p = must.Get(New(&rest.Config{Host: api.address}, func(e Event) {
		if e.Kind == RequestArrived {
			if n := p.Waiting(); n != 1 {
				t.Errorf("%d wait, want 1", n)
			}
			p.CutWatches("")
			p.ExpireWatches("")
			p.FailNextWrite(500)
			p.Step()
		}
	}))(t)
	defer p.Close()
	p.Pause()
	server := httptest.NewServer(p)
	defer server.Close()
	response := must.Get(http.Post(server.URL+deploymentsPath, "", nil))(t)
	defer response.Body.Close()
	if response.StatusCode != http.StatusInternalServerError {
		t.Errorf("got %s, want 500", response.Status)
	}
}

func TestCloseLetsGoOfEverything(t *testing.T) {
	events := newChannel(jsonType)
	l := startLine(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/b") {
			<-r.Context().Done() // never answers
		}
		events.ServeHTTP(w, r)
	})
	unanswered := l.start(http.MethodGet, deploymentsPath+"/b")
	l.awaitKind(1, RequestPassed)
	body := l.watch(deploymentsPath)
	l.Pause()
	events.frames <- encodeEvent(t, jsonType, "ADDED", deployment("c", "1"))
	events.frames <- encodeEvent(t, jsonType, "ADDED", deployment("d", "2"))
	l.awaitKind(2, EventArrived)
	held := l.start(http.MethodPost, deploymentsPath)
	l.awaitKind(3, RequestArrived)
	l.wantWaiting(3)

	l.Close()

	l.wantEnd(body)
	for _, ended := range []chan error{unanswered, held} {
		if err := <-ended; !errors.Is(err, io.EOF) {
			t.Errorf("got %v, want a closed connection", err)
		}
	}
	for _, e := range append(l.awaitKind(3, Answered)[1:], l.awaitKind(1, WatchClosed)...) {
		if e.Reason != errClosed.Error() {
			t.Errorf("got %+v, want that the Proxy was closed", e)
		}
	}
	l.wantWaiting(0)
	if err := <-l.start(http.MethodGet, "/version"); !errors.Is(err, io.EOF) {
		t.Errorf("got %v from a closed Proxy, want a closed connection", err)
	}
	wantNoGoroutines(t)
}

// wantNoGoroutines fails the test if a goroutine of a closed Proxy is left. Close does not wait for
// those of net/http, which end soon after.
func wantNoGoroutines(t *testing.T) {
	t.Helper()
	for begin := time.Now(); ; runtime.Gosched() {
		buffer := make([]byte, 1<<20)
		stacks := string(buffer[:runtime.Stack(buffer, true)])
		ours := regexp.MustCompile(`wire\.\(\*(Proxy|exchange|watch)\)`).FindString(stacks)
		if ours == "" && !strings.Contains(stacks, "net/http.(*persistConn)") {
			return
		}
		if strings.Contains(ours, "watch") || time.Since(begin) > patience {
			t.Fatalf("goroutines are left:\n%s", stacks)
		}
	}
}

func TestCloseDoesNotWaitForABodyThatDoesNotCome(t *testing.T) {
	l := startLine(t, nil)
	l.write("POST " + deploymentsPath + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n")
	for begun := false; !begun; runtime.Gosched() {
		l.Proxy.mu.Lock()
		begun = len(l.exchanges) > 0
		l.Proxy.mu.Unlock()
	}
	closed := make(chan bool)
	go func() {
		l.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(patience):
		t.Error("Close still waits")
	}
}
