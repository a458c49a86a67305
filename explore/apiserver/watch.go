package apiserver

import (
	"context"
	"errors"
	"io"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

// Watch is the stream of events that answers a request.
type Watch struct {
	Request *Request

	server  *Server
	after   int64 // the revision after which it shows what happens
	context context.Context
	end     context.CancelCauseFunc

	mu      sync.Mutex
	buffer  []byte
	changed *sync.Cond // the buffer, or the context
}

const defaultTimeout = 45 * time.Minute // of a watch, if the client does not say it

// watch answers a watch: the events that the client has missed, or the objects, then all that
// happens.
func (s *Server) watch(r *Request) (*Response, error) {
	revision, err := s.parseRevision(r)
	if err != nil {
		return nil, err
	}
	w := &Watch{Request: r, server: s, after: revision}
	w.changed = sync.NewCond(&w.mu)
	timeout := defaultTimeout
	if seconds := r.List.TimeoutSeconds; seconds != nil && *seconds > 0 {
		timeout = time.Duration(*seconds) * time.Second
	}
	w.context, w.end = context.WithCancelCause(r.context)
	time.AfterFunc(timeout, func() { w.end(io.EOF) })
	context.AfterFunc(w.context, func() {
		w.mu.Lock() // so that no reader is about to wait
		defer w.mu.Unlock()
		w.changed.Broadcast()
	})
	stream := r.List.SendInitialEvents != nil && *r.List.SendInitialEvents
	switch {
	case revision == 0 && r.List.SendInitialEvents != nil && !stream:
		w.after = s.revision
	case stream || revision == 0:
		if w.after = s.revision; r.AsOf > 0 {
			w.after = max(r.AsOf, revision)
		}
		for _, object := range s.sorted(r, w.after) {
			w.show(watch.Added, object)
		}
		if stream && r.List.AllowWatchBookmarks {
			end := r.kind.newObject()
			end.SetResourceVersion(strconv.FormatInt(w.after, 10))
			end.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
			w.show(watch.Bookmark, end)
		}
	}
	t := s.table(r.kind)
	for _, write := range t.since(w.after) {
		w.notify(write)
	}
	t.watches = append(t.watches, w)
	return &Response{Code: 200, Watch: w}, nil
}

// show shows an event, unless the interceptor wants it otherwise.
func (w *Watch) show(what watch.EventType, object *unstructured.Unstructured) {
	event := watch.Event{Type: what, Object: object}
	if i := w.Request.interceptor; i != nil {
		i.Event(w, event)
		return
	}
	w.Send(event)
}

// notify shows a write if it is one of objects that the client wants to see. The server is locked.
func (w *Watch) notify(write Write) {
	if write.Revision <= w.after {
		return
	}
	r := w.Request
	event, old := write.Event, write.Old
	is, was := write.New != nil && r.selects(event), old != nil && r.selects(old)
	switch {
	case is && was:
		w.show(watch.Modified, event)
	case is:
		w.show(watch.Added, event)
	case was:
		if write.New != nil { // it is as it was, in the version of the write that removed it
			event = old.DeepCopy()
			event.SetResourceVersion(strconv.FormatInt(write.Revision, 10))
		}
		w.show(watch.Deleted, event)
	}
}

// Send shows an event to the client. It is kept until the client reads it. Nothing is sent after
// End, or when the client has closed the watch.
func (w *Watch) Send(e watch.Event) {
	object := w.server.encode(e.Object.(*unstructured.Unstructured), w.Request.accept)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.Done() {
		return
	}
	w.buffer = append(w.buffer, `{"type":"`+string(e.Type)+`","object":`...)
	w.buffer = append(append(w.buffer, object...), "}\n"...)
	w.changed.Broadcast()
}

// End ends the stream after an ERROR event.
func (w *Watch) End(err *metav1.Status) {
	w.Send(watch.Event{Type: watch.Error, Object: asObject(statusKind, err)})
	w.end(io.EOF)
}

// Done reports whether the watch has ended or was closed by the client.
func (w *Watch) Done() bool { return w.context.Err() != nil }

// Read implements io.Reader for the client.
func (w *Watch) Read(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.buffer) == 0 && !w.Done() {
		w.changed.Wait()
	}
	n, err := copy(p, w.buffer), context.Cause(w.context)
	if w.buffer = w.buffer[n:]; n > 0 && errors.Is(err, io.EOF) {
		err = nil // after the last event
	}
	return n, err
}

// Close implements io.Closer for the client.
func (w *Watch) Close() error {
	w.end(io.ErrClosedPipe)
	return nil
}
