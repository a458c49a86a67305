package wire

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/internal/testing/must"
)

func TestExpiredWatchEndsWith410(t *testing.T) {
	forEachFraming(t, func(t *testing.T, mediaType string, c *channel, l *line) {
		data := must.Get(l.endWatch(c, l.ExpireWatches))(t)
		eventType, object := decodeFrame(data, mediaType)
		got := decode(object, mediaType, "")
		if eventType != "ERROR" || got.Kind != "Status" || got.Code != 410 || got.Reason != "Expired" {
			t.Errorf("got %s %+v, want an ERROR with 410, Expired", eventType, got)
		}
		events := append(l.awaitKind(4, EventArrived)[3:], l.awaitKind(3, EventPassed)[2:]...)
		for _, e := range events {
			if !e.Injected || e.Number != 4 || e.Type != "ERROR" || e.Code != 410 || e.Reason != "Expired" {
				t.Errorf("got %+v, want an injected 410", e)
			}
		}
		if closed := l.awaitKind(1, WatchClosed)[0]; !closed.Injected || closed.Reason != "" {
			t.Errorf("got %+v, want that the end was injected", closed)
		}
		l.wantWaiting(0)
	})
}

func TestProgramHasToListAfter410(t *testing.T) {
	const (
		list     = deploymentsPath
		begin    = deploymentsPath + "?watch=true"
		goOn     = begin + "&resourceVersion=7"
		anywhere = begin + "&resourceVersion=0"
		another  = "/api/v1/pods?watch=true&resourceVersion=7"
	)
	for name, requests := range map[string][]struct {
		path string
		code int
	}{
		"a watch goes on":         {{goOn, 410}, {goOn, 200}},
		"another resource":        {{another, 200}, {goOn, 410}},
		"the program lists":       {{list, 200}, {goOn, 200}},
		"a watch lists":           {{begin, 200}, {goOn, 200}},
		"a watch begins anywhere": {{anywhere, 200}, {goOn, 200}},
	} {
		t.Run(name, func(t *testing.T) {
			l := startLine(t, func(w http.ResponseWriter, r *http.Request) {
				if len(r.URL.Query().Get("first")) > 0 {
					newChannel(jsonType).ServeHTTP(w, r)
				}
			})
			body := l.watch(deploymentsPath + "?watch=true&first=true")
			l.ExpireWatches("")
			if _, err := io.ReadAll(body); err != nil {
				t.Error(err)
			}
			for _, request := range requests {
				if code, body := l.get(request.path); code != request.code {
					t.Errorf("%s: got %d (%s), want %d", request.path, code, body, request.code)
				}
			}
		})
	}
}

func TestNextWriteFails(t *testing.T) {
	for code, reason := range map[int]string{
		409: "Conflict", 429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable",
	} {
		t.Run(reason, func(t *testing.T) {
			passed := make(chan string, 10)
			l := startLine(t, func(_ http.ResponseWriter, r *http.Request) { passed <- r.URL.Path })
			l.FailNextWrite(code)
			for _, request := range []struct{ method, path string }{
				{http.MethodGet, deploymentsPath}, // is no write
				{http.MethodPut, leasesPath + "/b"},
				{http.MethodPost, "/apis/events.k8s.io/v1/namespaces/a/events"},
			} {
				if err := <-l.start(request.method, request.path); err != nil {
					t.Error(err)
				}
				if got := received(passed); got != request.path {
					t.Fatalf("%q has passed, want %s", got, request.path)
				}
			}

			response, err := l.do(http.MethodPost, deploymentsPath, "", nil)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			var status metav1.Status
			must.Do(t, json.NewDecoder(response.Body).Decode(&status))
			if response.StatusCode != code || string(status.Reason) != reason || int(status.Code) != code {
				t.Errorf("got %s with %+v, want %d, %s", response.Status, status, code, reason)
			}
			if code == 429 != (response.Header.Get("Retry-After") != "") {
				t.Errorf("got the header %v", response.Header)
			}
			answer := l.awaitKind(4, Answered)[3]
			if answer.Code != code || answer.Reason != reason || !answer.Injected {
				t.Errorf("got %+v, want an injected %s", answer, reason)
			}

			if got := received(passed); got != "" {
				t.Errorf("%s has passed", got)
			}
			err = <-l.start(http.MethodPost, deploymentsPath)
			if got := received(passed); err != nil || got != deploymentsPath {
				t.Errorf("%q has passed, %v, want the next write", got, err)
			}
		})
	}
}

// received returns what is in the channel, if anything is.
func received(c chan string) string {
	select {
	case got := <-c:
		return got
	default:
		return ""
	}
}
