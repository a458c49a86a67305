package wire

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	apiwatch "k8s.io/apimachinery/pkg/watch"
)

func (l *line) wantWaiting(want int) {
	l.t.Helper()
	if n := l.Waiting(); n != want {
		l.t.Errorf("%d wait, want %d", n, want)
	}
}

func TestWatchEventsPass(t *testing.T) {
	c := newChannel()
	l := startLine(t, c.ServeHTTP)
	body := l.watch(deploymentsPath + "?watch=true&sendInitialEvents=true")
	want := []string{"request arrived 0", "request passed 0", "answered 200"}
	for i, event := range []struct {
		eventType             apiwatch.EventType
		name, resourceVersion string
		initial               bool
	}{
		{"ADDED", "b", "3", true},
		{"BOOKMARK", "", "9", true},
		{"MODIFIED", "b", "11", false},
		{"BOOKMARK", "", "12", false},
		{"DELETED", "b", "13", false},
	} {
		object := deployment(event.name, event.resourceVersion)
		if event.resourceVersion == "9" {
			object = bookmark()
		}
		data := encodeEvent(event.eventType, object)
		c.frames <- data
		l.wantNext(body, data)
		for _, kind := range []Kind{EventArrived, EventPassed} {
			want = append(want, fmt.Sprintf("%s %d: %s %s %s %v", kind, i+1, event.eventType, event.name,
				event.resourceVersion, event.initial))
		}
	}
	data := encodeEvent("ERROR", status(http.StatusGone))
	c.frames <- data
	l.wantNext(body, data)
	close(c.frames)
	if rest, err := io.ReadAll(body); err != nil || len(rest) > 0 {
		t.Errorf("got %q, %v at the end, want nothing", rest, err)
	}

	l.awaitKind(1, WatchClosed)
	var got []string
	for _, e := range l.all() {
		text := strings.TrimSpace(fmt.Sprint(e.Kind, " ", e.Code, " ", e.Reason))
		if e.Object != nil {
			text = fmt.Sprintf("%s %d: %s %s %s %v",
				e.Kind, e.Number, e.Type, e.Object.Name, e.Object.ResourceVersion, e.Initial)
		}
		got = append(got, text)
		if e.Request != 1 || e.Verb != "watch" || e.Resource != "deployments.apps" ||
			e.Namespace != "a" || e.Injected {
			t.Errorf("got %+v, want an event of the watch", e)
		}
	}
	want = append(want, "event arrived 410 Expired", "event passed 410 Expired", "watch closed 0")
	if !slices.Equal(got, want) {
		t.Errorf("got %s\nwant %s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// The events of several watches have one order, in which Step lets them pass.
func TestHeldEventsPassInTheirOrder(t *testing.T) {
	c := newChannel()
	l := startLine(t, c.ServeHTTP)
	bodies := []io.Reader{l.watch(deploymentsPath), l.watch(deploymentsPath)}
	l.Pause()
	var sent [][]byte
	for i := range 6 {
		sent = append(sent, encodeEvent("ADDED", deployment(fmt.Sprint(i), "1")))
		c.frames <- sent[i]
		l.awaitKind(i+1, EventArrived)
	}
	arrived := l.awaitKind(6, EventArrived)
	for i := range arrived {
		l.wantWaiting(6 - i)
		l.Step()
		passed := l.awaitKind(i+1, EventPassed)[i]
		if passed.Number != i+1 || passed.Request != arrived[i].Request {
			t.Errorf("got %+v, want number %d of request %d", passed, i+1, arrived[i].Request)
		}
		l.wantNext(bodies[passed.Request-1], sent[i])
	}
}

// A bookmark is not held, but it must not overtake an event: after a bookmark, the program believes
// that it has seen all that was before.
func TestBookmarkDoesNotOvertake(t *testing.T) {
	c := newChannel()
	l := startLine(t, c.ServeHTTP)
	body := l.watch(deploymentsPath)
	l.Pause()
	mark := encodeEvent("BOOKMARK", deployment("", "1"))
	event := encodeEvent("ADDED", deployment("b", "2"))
	c.frames <- mark
	l.wantNext(body, mark)
	c.frames <- event
	c.frames <- mark
	l.awaitKind(3, EventArrived)
	l.wantWaiting(1)
	l.Step()
	l.wantNext(body, event)
	l.wantNext(body, mark)
	var types []string
	for _, e := range l.awaitKind(3, EventPassed) {
		types = append(types, e.Type)
	}
	if want := []string{"BOOKMARK", "ADDED", "BOOKMARK"}; !slices.Equal(types, want) {
		t.Errorf("got %v, want %v", types, want)
	}
}

// endWatch ends a watch with end, while an event is held. It returns what the program gets then.
func (l *line) endWatch(c *channel, end func(resource string)) (rest []byte, err error) {
	l.t.Helper()
	event := encodeEvent("ADDED", deployment("b", "1"))
	body := l.watch(deploymentsPath)
	c.frames <- event
	l.wantNext(body, event)
	l.Pause()
	c.frames <- event
	l.awaitKind(2, EventArrived)

	end("pods") // another resource
	l.Step()
	l.wantNext(body, event)
	c.frames <- event
	l.awaitKind(3, EventArrived)
	end("deployments.apps")
	return io.ReadAll(body)
}

func TestCutWatches(t *testing.T) {
	c := newChannel()
	l := startLine(t, c.ServeHTTP)
	rest, err := l.endWatch(c, l.CutWatches)
	if !errors.Is(err, io.ErrUnexpectedEOF) || len(rest) > 0 {
		t.Errorf("got %q, %v, want only %v", rest, err, io.ErrUnexpectedEOF)
	}
	closed := l.awaitKind(1, WatchClosed)[0]
	if !closed.Injected || closed.Reason != errCut.Error() || l.Waiting() != 0 {
		t.Errorf("got %+v, want that the watch was cut", closed)
	}
}

func TestProgramEndsItsWatch(t *testing.T) {
	l := startLine(t, newChannel().ServeHTTP)
	if err := <-l.start(http.MethodGet, deploymentsPath+"?watch=true"); err != nil {
		t.Fatal(err)
	}
	closed := l.awaitKind(1, WatchClosed)[0]
	if closed.Reason != "the program closed the connection" || closed.Injected {
		t.Errorf("got %+v, want that the program closed it", closed)
	}
}

func TestAPIServerBreaksAWatch(t *testing.T) {
	data := encodeEvent("ADDED", deployment("b", "1"))
	l := startLine(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", jsonType)
		_, _ = w.Write(append(data, data[:20]...))
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	body := l.watch(deploymentsPath)
	l.wantNext(body, data)
	if _, err := io.ReadAll(body); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v, want %v", err, io.ErrUnexpectedEOF)
	}
	closed := l.awaitKind(1, WatchClosed)[0]
	if closed.Reason != io.ErrUnexpectedEOF.Error() || closed.Injected {
		t.Errorf("got %+v, want that the API server broke it", closed)
	}
	want := []Kind{RequestArrived, RequestPassed, Answered, EventArrived, EventPassed, WatchClosed}
	if got := l.kinds(); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestBrokenFramesPass(t *testing.T) {
	c := newChannel()
	l := startLine(t, c.ServeHTTP)
	body := l.watch(deploymentsPath)
	const data = "not JSON\n{\"type\": \"ADDED\""
	c.frames <- []byte(data)
	close(c.frames)
	l.wantNext(body, []byte(data))
}
