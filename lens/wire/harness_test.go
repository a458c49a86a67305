package wire

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"example.com/sample-controller/internal/testing/must"
)

// patience is how long a test waits for what must happen.
const patience = 20 * time.Second

const (
	jsonType     = runtime.ContentTypeJSON
	protobufType = runtime.ContentTypeProtobuf

	deploymentsPath = "/apis/apps/v1/namespaces/a/deployments"
	leasesPath      = "/apis/coordination.k8s.io/v1/namespaces/a/leases"
)

// line is a program, a Proxy, and an API server whose answers the test gives.
type line struct {
	*Proxy
	t       *testing.T
	address string // of the Proxy
	api     *httptest.Server

	mu     sync.Mutex
	seen   []Event
	change chan struct{} // closed when there is another Event
}

func startLine(t *testing.T, handler http.HandlerFunc) *line {
	t.Helper()
	l := &line{t: t, change: make(chan struct{})}
	l.api = httptest.NewServer(handler)
	t.Cleanup(l.api.Close)
	l.Proxy = must.Get(New(&rest.Config{Host: l.api.URL}, l.observe))(t)
	server := httptest.NewServer(l)
	l.address = server.URL
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	return l
}

func (l *line) observe(e Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.Read()
	l.seen = append(l.seen, e)
	close(l.change)
	l.change = make(chan struct{})
}

// await returns the first n Events that are selected, when there are as many.
func (l *line) await(n int, selected func(Event) bool) []Event {
	l.t.Helper()
	late := time.After(patience)
	for {
		l.mu.Lock()
		events, change := slices.Clone(l.seen), l.change
		l.mu.Unlock()
		events = slices.DeleteFunc(events, func(e Event) bool { return !selected(e) })
		if len(events) >= n {
			return events[:n]
		}
		select {
		case <-change:
		case <-late:
			l.t.Fatalf("there are %d of these Events, want %d; all: %+v", len(events), n, l.all())
		}
	}
}

func (l *line) awaitKind(n int, kind Kind) []Event {
	l.t.Helper()
	return l.await(n, func(e Event) bool { return e.Kind == kind })
}

func (l *line) all() []Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.seen)
}

func (l *line) kinds() (kinds []Kind) {
	for _, e := range l.all() {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

// do sends a request as it is, and returns the answer as it is.
func (l *line) do(method, path, contentType string, body []byte) (*http.Response, error) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), patience)
	l.t.Cleanup(cancel)
	r := must.Get(http.NewRequestWithContext(ctx, method, l.address+path, bytes.NewReader(body)))(l.t)
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	r.Header.Set("Accept-Encoding", "gzip") // as client-go does
	r.Header.Set("Accept", protobufType+",application/cbor-seq,application/cbor;q=0.9")
	return l.client().Do(r)
}

// client returns an HTTP client that does not repeat requests: it has no connections to reuse.
func (l *line) client() *http.Client {
	transport := &http.Transport{DisableKeepAlives: true}
	l.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func (l *line) get(path string) (int, string) {
	l.t.Helper()
	response := must.Get(l.do(http.MethodGet, path, "", nil))(l.t)
	defer response.Body.Close()
	return response.StatusCode, string(must.Get(io.ReadAll(response.Body))(l.t))
}

// start sends a request in the background. What it returns tells when and how it has ended.
func (l *line) start(method, path string) (ended chan error) {
	ended = make(chan error, 1)
	go func() {
		response, err := l.do(method, path, "", nil)
		if err == nil {
			response.Body.Close()
		}
		ended <- err
	}()
	return ended
}

func encode(t *testing.T, mediaType string, object runtime.Object) []byte {
	t.Helper()
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), mediaType)
	return must.Get(runtime.Encode(info.Serializer, object))(t)
}

// typeMeta is in a Deployment on the wire.
var typeMeta = metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}

func deployment(name, resourceVersion string) *appsv1.Deployment {
	return &appsv1.Deployment{
		TypeMeta:   typeMeta,
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, ResourceVersion: resourceVersion},
		Spec:       appsv1.DeploymentSpec{Replicas: new(int32(1))},
	}
}

// bookmark returns the object of the bookmark at the end of the initial list.
func bookmark() *appsv1.Deployment {
	return &appsv1.Deployment{TypeMeta: typeMeta, ObjectMeta: metav1.ObjectMeta{
		ResourceVersion: "9",
		Annotations:     map[string]string{metav1.InitialEventsAnnotationKey: "true"},
	}}
}

// channel answers all watches of an API server with what is sent to it, until it is closed.
type channel struct{ frames chan []byte }

func newChannel() *channel { return &channel{make(chan []byte, 1000)} }

func (c *channel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Accept-Encoding") != "identity" { // Kubernetes compresses watches since 1.37
		w.WriteHeader(http.StatusNotAcceptable)
		return
	}
	w.Header().Set("Content-Type", jsonType+";stream=watch")
	flush := w.(http.Flusher).Flush
	flush()
	for {
		select {
		case frame, ok := <-c.frames:
			if !ok {
				return
			}
			_, _ = w.Write(frame) // fails when the Proxy is gone
			flush()
		case <-r.Context().Done():
			return
		}
	}
}

func (l *line) watch(path string) *bufio.Reader {
	l.t.Helper()
	if !strings.Contains(path, "?") {
		path += "?watch=true"
	}
	response := must.Get(l.do(http.MethodGet, path, "", nil))(l.t)
	l.t.Cleanup(func() { response.Body.Close() })
	if response.StatusCode != http.StatusOK {
		l.t.Fatalf("the watch was answered with %s", response.Status)
	}
	return bufio.NewReader(response.Body)
}

func (l *line) wantNext(body io.Reader, data []byte) {
	l.t.Helper()
	got := make([]byte, len(data))
	if n, err := io.ReadFull(body, got); err != nil || !bytes.Equal(got, data) {
		l.t.Fatalf("got %q, %v, want %q", got[:n], err, data)
	}
}
