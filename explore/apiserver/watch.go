package apiserver

import (
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// Watch is the stream of events that answers a request.
type Watch struct {
	Request *Request

	server      *Server
	interceptor Interceptor
	context     context.Context
	after       int64 // the revision after which it shows what happens
	timeout     *time.Timer

	mu       sync.Mutex
	buffer   []byte
	ended    bool          // no more events
	closed   bool          // by the client
	wake     chan struct{} // has an element if the reader should look
	bookmark *time.Timer   // until the next bookmark; nil if there is nothing to tell
}

// defaultTimeout is how long a watch takes if the client does not say it.
const defaultTimeout = 45 * time.Minute

// bookmarkEvery is the time between bookmarks, if there is something to tell.
const bookmarkEvery = time.Minute

// watch answers a watch: the events that the client has missed, or the objects, then all that
// happens.
func (s *Server) watch(ctx context.Context, i Interceptor, r *Request) (*Response, error) {
	if err := s.checkList(r); err != nil {
		return nil, err
	}
	revision, err := s.parseRevision(r)
	if apierrors.IsBadRequest(err) {
		return nil, err
	}
	w := &Watch{Request: r, server: s, interceptor: i, context: ctx, after: revision,
		wake: make(chan struct{}, 1)}
	w.start(r.List.TimeoutSeconds)
	stream := r.List.SendInitialEvents != nil && *r.List.SendInitialEvents
	fromNow := r.List.SendInitialEvents != nil && !stream && revision == 0
	switch {
	case stream && err != nil:
		w.fail(err)
		return &Response{Code: 200, Watch: w}, nil
	case stream || revision == 0 && !fromNow:
		w.after = s.revision
		if r.AsOf > 0 {
			w.after = max(r.AsOf, revision)
		}
		_, objects := s.sorted(r, w.after)
		for _, object := range objects {
			w.send(watch.Event{Type: watch.Added, Object: object})
		}
		if stream && r.List.AllowWatchBookmarks {
			w.sendBookmark(w.after, true)
		}
	case fromNow:
		w.after = s.revision
	default:
		if err := s.expired(revision); err != nil {
			w.fail(err)
			return &Response{Code: 200, Watch: w}, nil
		}
	}
	t := s.table(r.kind)
	begin, _ := slices.BinarySearchFunc(t.history, w.after+1, func(write Write, revision int64) int {
		return int(write.Revision - revision)
	})
	for _, write := range t.history[begin:] {
		w.notify(write)
	}
	t.watches = append(t.watches, w)
	return &Response{Code: 200, Watch: w}, nil
}

// start lets time end the watch.
func (w *Watch) start(seconds *int64) {
	after := defaultTimeout
	if seconds != nil && *seconds > 0 {
		after = time.Duration(*seconds) * time.Second
	}
	w.timeout = time.AfterFunc(after, func() { w.End(nil) })
}

// notify shows a write if it is one of objects that the client wants to see. The server is locked.
func (w *Watch) notify(write Write) {
	if write.Revision <= w.after {
		return
	}
	r, s := w.Request, w.server
	event := s.view(r.kind, write.event)
	is := write.New != nil && r.selects(event)
	was := write.Old != nil && r.selects(s.view(r.kind, write.Old))
	switch {
	case is && was:
		w.send(watch.Event{Type: watch.Modified, Object: event})
	case is:
		w.send(watch.Event{Type: watch.Added, Object: event})
	case was:
		if write.New != nil { // it is as it was, in the version of the write that removed it
			event = s.withRevision(s.view(r.kind, write.Old), write.Revision)
		}
		w.send(watch.Event{Type: watch.Deleted, Object: event})
	case r.List.AllowWatchBookmarks:
		w.tellLater()
	}
}

// tellLater sees to it that the client gets a bookmark.
func (w *Watch) tellLater() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.bookmark == nil && !w.ended && !w.closed {
		w.bookmark = time.AfterFunc(bookmarkEvery, w.tellRevision)
	}
}

// tellRevision sends a bookmark, so that the client can watch from there.
func (w *Watch) tellRevision() {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	w.mu.Lock()
	w.bookmark = nil
	w.mu.Unlock()
	if !w.Done() {
		w.sendBookmark(w.server.revision, false)
	}
}

func (w *Watch) sendBookmark(revision int64, initialEventsEnd bool) {
	metadata := map[string]any{"resourceVersion": strconv.FormatInt(revision, 10)}
	if initialEventsEnd {
		metadata["annotations"] = map[string]any{metav1.InitialEventsAnnotationKey: "true"}
	}
	apiVersion, kind := w.Request.kind.gvk.ToAPIVersionAndKind()
	w.send(watch.Event{Type: watch.Bookmark, Object: &unstructured.Unstructured{
		Object: map[string]any{"kind": kind, "apiVersion": apiVersion, "metadata": metadata}}})
}

// send gives an event to the interceptor.
func (w *Watch) send(e watch.Event) {
	if w.interceptor != nil {
		w.interceptor.Event(w, e)
		return
	}
	w.Send(e)
}

// Send shows an event to the client. It is kept until the client reads it. Nothing is sent after
// End, or when the client has closed the watch.
func (w *Watch) Send(e watch.Event) {
	w.write(e.Type, w.server.encode(e.Object.(*unstructured.Unstructured), w.Request.accept))
}

func (w *Watch) write(eventType watch.EventType, object []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended || w.closed {
		return
	}
	w.buffer = frame(w.buffer, eventType, object, mediaType(w.Request.accept))
	w.signal()
}

// signal wakes the reader. w.mu is locked.
func (w *Watch) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// stop stops the timers, and wakes the reader. w.mu is locked.
func (w *Watch) stop() {
	w.timeout.Stop()
	if w.bookmark != nil {
		w.bookmark.Stop()
	}
	w.signal()
}

// fail ends the watch with an error.
func (w *Watch) fail(err error) {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		w.End(new(status.Status()))
	}
}

// End ends the stream, after an ERROR event if there is an error.
func (w *Watch) End(err *metav1.Status) {
	if err != nil {
		status, _ := runtime.DefaultUnstructuredConverter.ToUnstructured(err)
		status["kind"], status["apiVersion"] = "Status", "v1"
		w.write(watch.Error, w.server.encode(&unstructured.Unstructured{Object: status}, w.Request.accept))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	w.stop()
}

// Done reports whether the watch has ended or was closed by the client.
func (w *Watch) Done() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ended || w.closed || w.context.Err() != nil
}

// Read implements io.Reader for the client.
func (w *Watch) Read(p []byte) (int, error) {
	for {
		w.mu.Lock()
		if w.closed {
			w.mu.Unlock()
			return 0, io.ErrClosedPipe
		}
		if len(w.buffer) > 0 {
			n := copy(p, w.buffer)
			if w.buffer = w.buffer[n:]; len(w.buffer) == 0 {
				w.buffer = nil
			}
			w.mu.Unlock()
			return n, nil
		}
		ended := w.ended
		w.mu.Unlock()
		if ended {
			return 0, io.EOF
		}
		select {
		case <-w.wake:
		case <-w.context.Done():
			return 0, w.context.Err()
		}
	}
}

// Close implements io.Closer for the client.
func (w *Watch) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed, w.buffer = true, nil
	w.stop()
	return nil
}
