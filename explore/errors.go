package explore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"syscall"
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

// errors answers each request with each error, once and for good. Without -explore.every, it takes
// the first request of each kind.
func (x *explorer) errors(_ *Scenario, r *result, first []fault) (faults []fault) {
	for _, r := range r.requests {
		if len(first) > 0 || !*every && x.tried[r.Kind] {
			continue
		}
		x.tried[r.Kind] = true
		for _, a := range Answers {
			faults = append(faults, x.failure(r, a, false), x.failure(r, a, true))
		}
	}
	return faults
}

// failure returns the fault that a request gets an error.
func (x *explorer) failure(r Request, a Answer, forGood bool) fault {
	f := fault{at: r.String(), forGood: forGood}
	often, all := "once", ""
	if forGood {
		often, all, f.rest = "for-good", ", and all later ones of its kind, too", 10*time.Minute
	}
	f.name = fmt.Sprintf("%s/%s/%s", r, strings.ReplaceAll(a.Name, " ", "-"), often)
	f.what = fmt.Sprintf("the request %s got the answer %q%s", r, a.Name, all)
	f.request = func(_ *World, _ *process, do func() error) error {
		if a.Happens {
			_ = do()
		}
		if apierrors.ReasonForError(a.Err) != metav1.StatusReasonUnknown {
			return a.Err
		}
		return &url.Error{Op: "Any", URL: "https://injected", Err: a.Err}
	}
	f.judge = func(got, _ *result) {
		x.report.Outcomes = append(x.report.Outcomes, Outcome{
			Answer: a, Request: r, ForGood: forGood, Ends: len(got.ends) > 0, Waits: waits(got, r),
			Problems: len(got.problems) > 0, Repaired: got.repaired,
		})
		// client-go asks for a stream again at once after 410: watchList in its tools/cache.
		if apierrors.IsResourceExpired(a.Err) && r.verb == "watch" {
			got.restless = nil
		}
		// Nobody can know that an answer of 404 is wrong.
		if apierrors.IsNotFound(a.Err) && got.repaired {
			got.problems = nil
		}
	}
	return f
}

// waits returns how long the controller waited each time before it made a request again.
func waits(got *result, r Request) (waits []time.Duration) {
	begin := slices.IndexFunc(got.requests, func(other Request) bool {
		return other.String() == r.String()
	})
	last := got.requests[begin].At
	for _, other := range got.requests[begin+1:] {
		if other.about() == r.about() {
			waits, last = append(waits, other.At.Sub(last)), other.At
		}
	}
	return waits
}
