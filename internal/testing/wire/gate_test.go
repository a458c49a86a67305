package wire

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

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

func TestWaitEndsWithItsContext(t *testing.T) {
	atGate(t, func(s *turnstile) {
		s.Pause()
		ctx, cancel := context.WithCancelCause(s.t.Context())
		h, cause := &held{}, errors.New("because")
		s.enter(h)
		cancel(cause)
		if err := s.wait(ctx, h); !errors.Is(err, cause) {
			s.t.Errorf("got %v, want %v", err, cause)
		}
	})
}
