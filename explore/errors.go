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

	"example.com/sample-controller/explore/apiserver"
)

// Answer is an error in place of an answer.
type Answer struct {
	Name string // "409 Conflict"
	Err  error
	// Happens says that the API server has done what the request asked for.
	Happens bool
}

var errInjected = errors.New("injected")

// Answers are the errors that each request gets. Read them, and do not change them.
var Answers = []Answer{
	{"400", apierrors.NewBadRequest("injected"), false},
	{"401", apierrors.NewUnauthorized("injected"), false},
	{"403", apierrors.NewForbidden(schema.GroupResource{}, "", errInjected), false},
	{"404", apierrors.NewNotFound(schema.GroupResource{}, ""), false},
	{"409 AlreadyExists", apierrors.NewAlreadyExists(schema.GroupResource{}, ""), true}, // it was sent twice
	{"409 Conflict", apierrors.NewConflict(schema.GroupResource{}, "", errInjected), false},
	{"410", apierrors.NewResourceExpired("injected"), false},
	{"413", apierrors.NewRequestEntityTooLargeError("injected"), false},
	{"422", apierrors.NewInvalid(schema.GroupKind{}, "", nil), false},
	{"429", apierrors.NewTooManyRequests("injected", 1), false},
	{"500", apierrors.NewInternalError(errInjected), false},
	{"503", apierrors.NewServiceUnavailable("injected"), false},
	{"504", apierrors.NewTimeoutError("injected", 1), false},
	{"cut before", syscall.ECONNREFUSED, false},
	{"cut within", syscall.ECONNRESET, false},
	{"cut after", io.ErrUnexpectedEOF, true},
	{"timeout", context.DeadlineExceeded, false},
	{"timeout after", context.DeadlineExceeded, true},
}

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

// instead is what happens to a request that gets this answer.
func (a Answer) instead(_ *World, _ *process, do call) (*apiserver.Response, error) {
	if a.Happens {
		response, err := do()
		if err != nil && apierrors.IsAlreadyExists(a.Err) {
			return response, err // so there is nothing of that name
		}
	}
	if apierrors.ReasonForError(a.Err) != metav1.StatusReasonUnknown {
		return nil, a.Err
	}
	return nil, &url.Error{Op: "Any", URL: "https://injected", Err: a.Err}
}

// isFor reports whether an API server can give this answer to a request.
func (a Answer) isFor(r Request) bool {
	switch {
	case apierrors.IsAlreadyExists(a.Err):
		return r.verb == "create" && r.Name != "" // otherwise, the name is generated
	case apierrors.IsConflict(a.Err):
		return !isRead(r.verb)
	}
	return true
}

// errors answers each request with each error, once and for good. Without -explore.every, it takes
// the first request of each kind.
func (x *explorer) errors(p plan, r *result) (plans []plan) {
	for _, r := range r.requests {
		if len(p.faults) > 0 || !*every && x.tried[r.Kind] {
			continue
		}
		x.tried[r.Kind] = true
		for _, a := range Answers {
			if a.isFor(r) {
				plans = append(plans, x.failure(p, r, a, false), x.failure(p, r, a, true))
			}
		}
	}
	return plans
}

// telling are the answers that find most, by rank.
var telling = [][]string{{"409-Conflict/once", "cut-after/once"},
	{"409-AlreadyExists/once", "404/once", "500/once", "500/for-good"},
	{"403/for-good", "409-Conflict/for-good", "timeout-after/once", "422/once"}}

func (x *explorer) failure(p plan, r Request, a Answer, forGood bool) plan {
	f := fault{at: r, forGood: forGood, hook: hook{request: a.instead}}
	f.what = fmt.Sprintf("the request %s got the answer %q", r, a.Name)
	often, rest := "once", time.Duration(0)
	if forGood {
		often, rest = "for-good", 10*time.Minute
		f.what += ", and all later ones of its kind, too"
	}
	name := strings.ReplaceAll(a.Name, " ", "-") + "/" + often
	rank := slices.IndexFunc(telling, func(few []string) bool { return slices.Contains(few, name) })
	if rank < 0 {
		rank = len(telling) + 1
	}
	p = p.with(r.String()+"/"+name, rank, f)
	p.rest, p.strict = rest, true
	p.judge = func(got, _ *result) {
		x.outcomes = append(x.outcomes, Outcome{
			Answer: a, Request: r, ForGood: forGood, Ends: len(got.ends) > 0, Waits: waits(got, r),
			Problems: len(got.problems) > 0, Repaired: got.remark != "",
		})
		// client-go asks for a stream again at once after 410: watchList in its tools/cache.
		if apierrors.IsResourceExpired(a.Err) && r.verb == "watch" {
			got.restless = nil
		}
		// Nobody can know that an answer of 404 is wrong. No API server gives it to a write for good if
		// the object exists: what comes of that is told, but not judged.
		if apierrors.IsNotFound(a.Err) && (got.remark != "" || r.write) {
			got.problems = nil
		}
	}
	return p
}

func waits(got *result, r Request) (waits []time.Duration) {
	var last time.Time
	for _, other := range got.requests {
		switch {
		case other.String() == r.String():
			last = other.At
		case other.about() == r.about() && !last.IsZero():
			waits, last = append(waits, other.At.Sub(last)), other.At
		}
	}
	return waits
}

// AnswerWrites returns a step after which the next n writes of the controller that can get one of the
// [Answers] get that one, such as "409 Conflict".
func AnswerWrites(n int, answer string) Step {
	name := fmt.Sprintf("answer %d writes with %s", n, answer)
	return network(name, func(w *World) {
		i := slices.IndexFunc(Answers, func(a Answer) bool { return a.Name == answer })
		if i < 0 {
			w.mistakes = append(w.mistakes, name+": this is none of the Answers")
			return
		}
		h := hook{what: name, once: true, request: Answers[i].instead,
			matches: func(of Request) bool { return of.write && Answers[i].isFor(of) }}
		w.hooks = append(w.hooks, slices.Repeat([]hook{h}, n)...)
	})
}
