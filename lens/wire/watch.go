package wire

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
)

// maxHeld is how many events of a watch are held; then it is not read any more.
const maxHeld = 1000

// watch is the body of the answer to a watch, which lets each event pass when it may.
type watch struct {
	*exchange
	body    io.ReadCloser // from the API server
	initial bool          // the initial list has not ended
	frames  chan frame
	readErr error  // why frames is closed
	passing []byte // the rest of the frame that passes
}

// frame is an event as it is on the wire.
type frame struct {
	data  []byte
	event Event // as it was reported; empty if nothing could be read of it
	held  *held // nil if it never waits
}

// newWatch returns a watch that reads ahead, so that what waits can be counted.
func newWatch(x *exchange, response *http.Response) *watch {
	w := &watch{
		exchange: x, body: response.Body, initial: x.sendInitial, frames: make(chan frame, maxHeld),
	}
	go w.readAhead()
	return w
}

func (w *watch) readAhead() {
	defer close(w.frames)
	r := bufio.NewReader(w.body)
	for w.readErr == nil {
		data, err := r.ReadBytes('\n')
		if w.readErr = err; len(data) == 0 {
			continue
		}
		select {
		case w.frames <- w.arriveEvent(data):
		case <-w.watching.Done():
			w.readErr = context.Cause(w.watching)
		}
	}
}

// arriveEvent reports an event.
func (w *watch) arriveEvent(data []byte) frame {
	e := w.event
	var read metav1.WatchEvent
	if json.Unmarshal(data, &read) != nil || read.Type == "" {
		return frame{data: data}
	}
	e.Kind, e.Type, e.Initial = EventArrived, read.Type, w.initial
	e.content = sync.OnceValue(func() content { return decode(read.Object.Raw, runtime.ContentTypeJSON) })
	isBookmark := read.Type == string(apiwatch.Bookmark)
	if isBookmark && w.initial {
		bookmark := e.content().Metadata
		if bookmark != nil && bookmark.Annotations[metav1.InitialEventsAnnotationKey] == "true" {
			w.initial = false
		}
	}
	var h *held
	if e.mayBeHeld() && !isBookmark && !e.Injected {
		h = &held{owner: w.exchange, watch: e.Resource}
	}
	return frame{data, w.p.report(e, h), h}
}

// Read returns the frames that have passed.
func (w *watch) Read(p []byte) (int, error) {
	for len(w.passing) == 0 {
		if w.err != nil {
			return 0, w.err
		}
		w.passing, w.err = w.pass()
	}
	n := copy(p, w.passing)
	w.passing = w.passing[n:]
	return n, nil
}

// pass returns the next frame when it may pass. The last one comes with an error.
func (w *watch) pass() (data []byte, err error) {
	var f frame
	select {
	case next, ok := <-w.frames:
		if f = next; !ok {
			err = w.readErr
		} else if f.held != nil {
			err = w.p.wait(w.watching, f.held)
		}
	case <-w.watching.Done():
		err = context.Cause(w.watching)
	}
	switch {
	case errors.Is(err, errExpired):
		f, err = w.expired(), io.EOF
	case err != nil:
		return nil, err
	}
	if f.event.Kind != "" {
		f.event.Kind = EventPassed
		w.p.report(f.event, nil)
	}
	return f.data, err
}

// expired returns the last frame of a watch that has expired.
func (w *watch) expired() frame {
	w.Close() // from now on, readAhead uses the watch no more
	w.event.Injected = true
	return w.arriveEvent(encodeEvent(apiwatch.Error, status(http.StatusGone)))
}

// Close ends readAhead.
func (w *watch) Close() error {
	w.expire(nil)
	err := w.body.Close()
	for range w.frames { // until it is closed
	}
	return err
}
