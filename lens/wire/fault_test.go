package wire

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/internal/testing/must"
)

func TestExpiredWatchEndsWith410(t *testing.T) {
	c := newChannel()
	l := startLine(t, c.ServeHTTP)
	var event metav1.WatchEvent
	must.Do(t, json.Unmarshal(must.Get(l.endWatch(c, l.ExpireWatches))(t), &event))
	got := decode(event.Object.Raw, jsonType)
	if event.Type != "ERROR" || got.Kind != "Status" || got.Code != 410 || got.Reason != "Expired" {
		t.Errorf("got %s %+v, want an ERROR with 410, Expired", event.Type, got)
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
}

func TestNextWriteFails(t *testing.T) {
	for code, reason := range map[int]string{409: "Conflict", 500: "InternalError"} {
		t.Run(reason, func(t *testing.T) {
			passed := make(chan string, 10)
			l := startLine(t, func(_ http.ResponseWriter, r *http.Request) { passed <- r.URL.Path })
			l.FailNextWrite(code)
			for _, request := range []struct{ method, path string }{
				{http.MethodGet, deploymentsPath}, // is no write
				{http.MethodPut, leasesPath + "/b"},
				{http.MethodPost, "/apis/events.k8s.io/v1/namespaces/a/events"},
			} {
				must.Do(t, <-l.start(request.method, request.path))
				if got := received(passed); got != request.path {
					t.Fatalf("%q has passed, want %s", got, request.path)
				}
			}

			response, err := l.do(http.MethodPost, deploymentsPath, "", nil)
			must.Do(t, err)
			defer response.Body.Close()
			var status metav1.Status
			must.Do(t, json.NewDecoder(response.Body).Decode(&status))
			if response.StatusCode != code || string(status.Reason) != reason || int(status.Code) != code {
				t.Errorf("got %s with %+v, want %d, %s", response.Status, status, code, reason)
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

// turnstile is a gate that records what has passed.
type turnstile struct {
	*gate
	t      *testing.T
	passed []string
}

func atGate(t *testing.T, test func(*turnstile)) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{holds: map[string]time.Time{}, changed: make(chan struct{})}
		test(&turnstile{t: t, gate: g})
	})
}

func (s *turnstile) arrive(name, watch string) {
	s.t.Helper()
	h := &held{watch: watch}
	s.enter(h)
	go func() {
		if err := s.wait(s.t.Context(), h); err == nil {
			s.passed = append(s.passed, name)
		}
	}()
	synctest.Wait()
}

func (s *turnstile) want(waiting int, passed ...string) {
	s.t.Helper()
	synctest.Wait()
	if !slices.Equal(s.passed, passed) || s.Waiting() != waiting {
		s.t.Errorf("%d wait, these have passed: %v; want %d, and %v",
			s.Waiting(), s.passed, waiting, passed)
	}
}

func TestStepLetsTheFirstPass(t *testing.T) {
	atGate(t, func(s *turnstile) {
		s.arrive("open", "")
		s.want(0, "open")
		s.Pause()
		s.Step() // nothing waits
		s.arrive("a", "")
		s.arrive("b", "pods")
		s.arrive("c", "")
		time.Sleep(time.Hour)
		s.want(3, "open")
		s.Step()
		s.want(2, "open", "a")
		s.Step()
		s.want(1, "open", "a", "b")
		s.Open()
		s.want(0, "open", "a", "b", "c")
	})
}

func TestStepsCount(t *testing.T) {
	atGate(t, func(s *turnstile) {
		s.Pause()
		s.enter(&held{}) // its goroutine is slow: it does not even wait yet
		s.arrive("b", "")
		s.Step()
		s.want(2)
		s.Step()
		s.want(1, "b")
	})
}

func TestSlowGateHoldsEachThingForAWhile(t *testing.T) {
	atGate(t, func(s *turnstile) {
		s.Slow(300 * time.Millisecond)
		s.arrive("a", "")
		time.Sleep(200 * time.Millisecond)
		s.arrive("b", "pods")
		time.Sleep(99 * time.Millisecond)
		s.want(2)
		time.Sleep(time.Millisecond)
		s.want(1, "a")
		time.Sleep(199 * time.Millisecond)
		s.want(1, "a")
		time.Sleep(time.Millisecond)
		s.want(0, "a", "b")
	})
}

func TestDelayCountsFromWhenItWasSet(t *testing.T) {
	atGate(t, func(s *turnstile) {
		s.Pause()
		s.arrive("a", "")
		time.Sleep(time.Hour)
		s.Slow(time.Second)
		time.Sleep(999 * time.Millisecond)
		s.want(1)
		time.Sleep(time.Millisecond)
		s.want(0, "a")
	})
}

func TestHeldWatch(t *testing.T) {
	atGate(t, func(s *turnstile) {
		s.HoldWatch("pods", 5*time.Second)
		s.arrive("pod", "pods")
		s.arrive("node", "nodes")
		s.arrive("request", "")
		s.want(1, "node", "request")
		s.Open() // is about something else
		time.Sleep(5*time.Second - time.Nanosecond)
		s.want(1, "node", "request")
		time.Sleep(time.Nanosecond)
		s.want(0, "node", "request", "pod")
		s.arrive("pod 2", "pods")
		s.want(0, "node", "request", "pod", "pod 2")
		s.HoldWatch("pods", time.Hour)
		s.arrive("pod 3", "pods")
		s.Step()
		s.want(0, "node", "request", "pod", "pod 2", "pod 3")
	})
}
