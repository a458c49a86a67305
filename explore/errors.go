package explore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Answer is an error in place of an answer.
type Answer struct {
	Name string // "409 Conflict"
	Err  error
	// Happens says that the API server has done what the request asked for.
	Happens bool
}

// Answers are the errors that each request gets.
var Answers = func() []Answer {
	of, kind, injected := schema.GroupResource{}, schema.GroupKind{}, errors.New("injected")
	return []Answer{
		{"400", apierrors.NewBadRequest("injected"), false},
		{"401", apierrors.NewUnauthorized("injected"), false},
		{"403", apierrors.NewForbidden(of, "", injected), false},
		{"404", apierrors.NewNotFound(of, ""), false},
		{"409 AlreadyExists", apierrors.NewAlreadyExists(of, ""), false},
		{"409 Conflict", apierrors.NewConflict(of, "", injected), false},
		{"410", apierrors.NewResourceExpired("injected"), false},
		{"413", apierrors.NewRequestEntityTooLargeError("injected"), false},
		{"422", apierrors.NewInvalid(kind, "", nil), false},
		{"429", apierrors.NewTooManyRequests("injected", 1), false},
		{"500", apierrors.NewInternalError(injected), false},
		{"503", apierrors.NewServiceUnavailable("injected"), false},
		{"504", apierrors.NewTimeoutError("injected", 1), false},
		{"cut before", syscall.ECONNREFUSED, false},
		{"cut within", syscall.ECONNRESET, false},
		{"cut after", io.ErrUnexpectedEOF, true},
		{"timeout", context.DeadlineExceeded, false},
		{"timeout after", context.DeadlineExceeded, true},
	}
}()

// Outcome is what the controller did about an error.
type Outcome struct {
	Answer  Answer
	Request Request
	ForGood bool // until ten minutes after the last step, and not once
	Ends    bool // the process ended
	// Waits is how long the controller waited each time before it made the request again.
	Waits []time.Duration
	// Problems says that something was wrong in the end. Repaired says that a new process put that
	// right.
	Problems, Repaired bool
}

// errors answers each request of a scenario with each error, once and for good. Without
// -explore.every, it takes the first request of each kind.
func (x *explorer) errors(
	t *testing.T, c *cases, s *Scenario, calm *result,
) (outcomes []Outcome) {
	for _, r := range calm.requests {
		if !*every && x.tried[r.Kind] {
			continue
		}
		x.tried[r.Kind] = true
		c.add("requests", 1)
		for _, a := range Answers {
			for _, forGood := range []bool{false, true} {
				if outcome := x.failAt(t, c, s, r, a, forGood); outcome != nil {
					outcomes = append(outcomes, *outcome)
				}
			}
		}
	}
	return outcomes
}

// failAt answers a request with an error, and returns what the controller does about it, or nil.
func (x *explorer) failAt(
	t *testing.T, c *cases, s *Scenario, r Request, a Answer, forGood bool,
) (outcome *Outcome) {
	often, more := "once", time.Duration(0)
	if forGood {
		often, more = "for-good", 10*time.Minute
	}
	name := fmt.Sprintf("%s/%s/%s", r, strings.ReplaceAll(a.Name, " ", "-"), often)
	c.run(t, name, true, func(t *testing.T) {
		tries := &tries{request: r, answer: a, forGood: forGood}
		got := x.run(t, s, func(w *World) { w.disturb = tries.disturb }, func(w *World) {
			w.play(s.steps())
			time.Sleep(more)
		})
		if len(tries.at) == 0 {
			c.miss(t)
		}
		outcome = &Outcome{
			Answer: a, Request: r, ForGood: forGood, Ends: len(got.ends) > 0,
			Problems: len(got.problems) > 0, Repaired: got.repaired,
		}
		for i := 1; i < len(tries.at); i++ {
			outcome.Waits = append(outcome.Waits, tries.at[i].Sub(tries.at[i-1]))
		}
		// client-go asks for a stream again at once after 410: watchList in its tools/cache.
		if apierrors.IsResourceExpired(a.Err) && r.verb == "watch" {
			got.restless = nil
		}
		// Nobody can know that an answer of 404 is wrong.
		if apierrors.IsNotFound(a.Err) && got.repaired {
			got.problems = nil
		}
		fail(t, fmt.Sprintf("%s gets %s (%s)", r, a.Name, often), got.wrong(got.unasked))
	})
	return outcome
}

// tries answers a request with an error, and notes when the controller makes it again.
type tries struct {
	request Request
	answer  Answer
	forGood bool

	mu sync.Mutex
	at []time.Time
}

func (y *tries) disturb(_ *process, r Request, do func() error) error {
	if !y.hit(r) {
		return do()
	}
	if y.answer.Happens {
		_ = do()
	}
	if apierrors.ReasonForError(y.answer.Err) != metav1.StatusReasonUnknown {
		return y.answer.Err
	}
	return &url.Error{Op: "Any", URL: "https://injected", Err: y.answer.Err}
}

// hit notes a try, and reports whether it gets the error.
func (y *tries) hit(r Request) bool {
	y.mu.Lock()
	defer y.mu.Unlock()
	first := len(y.at) == 0
	if r.about() != y.request.about() || first && r.String() != y.request.String() {
		return false
	}
	y.at = append(y.at, r.At)
	return first || y.forGood
}
