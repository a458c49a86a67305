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
	"k8s.io/apimachinery/pkg/watch"
)

// Watch is the stream of events that answers a request.
type Watch struct {
	Request *Request

	server   *Server
	after    int64 // the revision after which it shows what happens
	bookmark bool  // is due, because there is something to tell
	context  context.Context
	end      context.CancelCauseFunc

	mu     sync.Mutex
	buffer []byte
	wake   chan struct{} // has an element if the reader should look
}

const (
	defaultTimeout = 45 * time.Minute // of a watch, if the client does not say it
	bookmarkEvery  = time.Minute      // if there is something to tell
)

// watch answers a watch: the events that the client has missed, or the objects, then all that
// happens.
func (s *Server) watch(r *Request) (*Response, error) {
	revision, err := s.parseRevision(r)
	if apierrors.IsBadRequest(err) {
		return nil, err
	}
	var tooLarge *apierrors.StatusError
	w := &Watch{Request: r, server: s, after: revision, wake: make(chan struct{}, 1)}
	w.start(r.List.TimeoutSeconds)
	stream := r.List.SendInitialEvents != nil && *r.List.SendInitialEvents
	switch {
	case stream && errors.As(err, &tooLarge):
		w.End(&tooLarge.ErrStatus)
	case revision == 0 && r.List.SendInitialEvents != nil && !stream:
		w.after = s.revision
	case stream || revision == 0:
		if w.after = s.revision; r.AsOf > 0 {
			w.after = max(r.AsOf, revision)
		}
		_, objects := s.sorted(r, w.after)
		for _, object := range objects {
			r.interceptor.Event(w, watch.Event{Type: watch.Added, Object: object})
		}
		if stream && r.List.AllowWatchBookmarks {
			w.sendBookmark(w.after, true)
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

// start lets time, or the client, end the watch.
func (w *Watch) start(seconds *int64) {
	after := defaultTimeout
	if seconds != nil && *seconds > 0 {
		after = time.Duration(*seconds) * time.Second
	}
	w.context, w.end = context.WithCancelCause(w.Request.context)
	time.AfterFunc(after, func() { w.end(io.EOF) })
}

// notify shows a write if it is one of objects that the client wants to see. The server is locked.
func (w *Watch) notify(write Write) {
	if write.Revision <= w.after {
		return
	}
	r := w.Request
	event, old := r.kind.view(write.event), r.kind.view(write.Old)
	is, was := write.New != nil && r.selects(event), old != nil && r.selects(old)
	switch {
	case is && was:
		r.interceptor.Event(w, watch.Event{Type: watch.Modified, Object: event})
	case is:
		r.interceptor.Event(w, watch.Event{Type: watch.Added, Object: event})
	case was:
		if write.New != nil { // it is as it was, in the version of the write that removed it
			event = withRevision(old, write.Revision)
		}
		r.interceptor.Event(w, watch.Event{Type: watch.Deleted, Object: event})
	case r.List.AllowWatchBookmarks && !w.bookmark:
		w.bookmark = true
		time.AfterFunc(bookmarkEvery, w.tellRevision)
	}
}

// tellRevision sends a bookmark, so that the client can watch from there.
func (w *Watch) tellRevision() {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	if w.bookmark = false; !w.Done() {
		w.sendBookmark(w.server.revision, false)
	}
}

func (w *Watch) sendBookmark(revision int64, initialEventsEnd bool) {
	metadata := map[string]any{"resourceVersion": strconv.FormatInt(revision, 10)}
	if initialEventsEnd {
		metadata["annotations"] = map[string]any{metav1.InitialEventsAnnotationKey: "true"}
	}
	apiVersion, kind := w.Request.kind.gvk.ToAPIVersionAndKind()
	bookmark := map[string]any{"kind": kind, "apiVersion": apiVersion, "metadata": metadata}
	w.Request.interceptor.Event(w, watch.Event{Type: watch.Bookmark,
		Object: &unstructured.Unstructured{Object: bookmark}})
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
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// End ends the stream, after an ERROR event if there is an error.
func (w *Watch) End(err *metav1.Status) {
	if err != nil {
		status, _ := converter.ToUnstructured(err)
		status["kind"], status["apiVersion"] = "Status", "v1"
		w.Send(watch.Event{Type: watch.Error, Object: &unstructured.Unstructured{Object: status}})
	}
	w.end(io.EOF)
}

// Done reports whether the watch has ended or was closed by the client.
func (w *Watch) Done() bool { return w.context.Err() != nil }

// Read implements io.Reader for the client.
func (w *Watch) Read(p []byte) (int, error) {
	for {
		w.mu.Lock()
		n, err := copy(p, w.buffer), context.Cause(w.context)
		w.buffer = w.buffer[n:]
		w.mu.Unlock()
		switch {
		case n > 0 && (err == nil || errors.Is(err, io.EOF)):
			return n, nil
		case err != nil:
			return 0, err
		}
		select {
		case <-w.wake:
		case <-w.context.Done():
		}
	}
}

// Close implements io.Closer for the client.
func (w *Watch) Close() error {
	w.end(io.ErrClosedPipe)
	return nil
}
