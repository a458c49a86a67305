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

func newTurnstile(t *testing.T) *turnstile {
	return &turnstile{t: t, gate: &gate{holds: map[string]time.Time{}, changed: make(chan struct{})}}
}

// arrive makes something wait at the gate until ctx is done.
func (s *turnstile) arrive(ctx context.Context, name, watch string) {
	s.t.Helper()
	h := &held{watch: watch}
	s.enter(h)
	go func() {
		if err := s.wait(ctx, h); err == nil {
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

func TestOpenGateHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTurnstile(t)
		s.arrive(t.Context(), "a", "")
		s.want(0, "a")
		s.Pause()
		s.arrive(t.Context(), "b", "pods")
		s.want(1, "a")
		s.Open()
		s.want(0, "a", "b")
	})
}

func TestStepLetsTheFirstPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTurnstile(t)
		s.Pause()
		s.Step() // nothing waits
		s.arrive(t.Context(), "a", "")
		s.arrive(t.Context(), "b", "pods")
		s.arrive(t.Context(), "c", "")
		time.Sleep(time.Hour)
		s.want(3)
		s.Step()
		s.want(2, "a")
		s.Step()
		s.want(1, "a", "b")
		s.Step()
		s.want(0, "a", "b", "c")
	})
}

func TestStepsCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTurnstile(t)
		s.Pause()
		s.enter(&held{}) // its goroutine is slow: it does not even wait yet
		s.arrive(t.Context(), "b", "")
		s.Step()
		s.want(2)
		s.Step()
		s.want(1, "b")
	})
}

func TestSlowGateHoldsEachThingForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTurnstile(t)
		s.Slow(300 * time.Millisecond)
		s.arrive(t.Context(), "a", "")
		time.Sleep(200 * time.Millisecond)
		s.arrive(t.Context(), "b", "pods")
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
	synctest.Test(t, func(t *testing.T) {
		s := newTurnstile(t)
		s.Pause()
		s.arrive(t.Context(), "a", "")
		time.Sleep(time.Hour)
		s.Slow(time.Second)
		time.Sleep(999 * time.Millisecond)
		s.want(1)
		time.Sleep(time.Millisecond)
		s.want(0, "a")
	})
}

func TestHeldWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTurnstile(t)
		s.HoldWatch("pods", 5*time.Second)
		s.arrive(t.Context(), "pod", "pods")
		s.arrive(t.Context(), "node", "nodes")
		s.arrive(t.Context(), "request", "")
		s.want(1, "node", "request")
		s.Open() // is about something else
		time.Sleep(5*time.Second - time.Nanosecond)
		s.want(1, "node", "request")
		time.Sleep(time.Nanosecond)
		s.want(0, "node", "request", "pod")
		s.arrive(t.Context(), "pod 2", "pods")
		s.want(0, "node", "request", "pod", "pod 2")
	})
}

func TestStepBreaksAHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTurnstile(t)
		s.HoldWatch("pods", time.Hour)
		s.arrive(t.Context(), "pod", "pods")
		s.Step()
		s.want(0, "pod")
	})
}

func TestWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTurnstile(t)
		s.Pause()
		ctx, cancel := context.WithCancelCause(t.Context())
		h := &held{}
		s.enter(h)
		cause := errors.New("because")
		cancel(cause)
		if err := s.wait(ctx, h); !errors.Is(err, cause) {
			t.Errorf("got %v, want %v", err, cause)
		}
	})
}
