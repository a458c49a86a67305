package explore

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"example.com/sample-controller/explore/apiserver"
)

// plan is what happens in a case.
type plan struct {
	name    string
	steps   []Step        // with the waits after them
	faults  []fault       // that happen meanwhile
	rest    time.Duration // how long they may still happen after the last step
	more    int           // how many faults may follow after these
	calm    *result       // of the undisturbed run, or nil if there is none to compare with
	restart bool          // what a new process changes in the end is wrong
	slow    bool          // each write takes more than a second
	// strict says that each write that the newest state does not ask for is wrong. Otherwise, only
	// deletions are: the controller cannot know yet that something is no longer asked for.
	strict bool
	judge  func(got, calm *result)  // unless it is nil
	then   func(got *result) []plan // what else to try, unless it is nil

	kind string // of the fault, and of what it happens to
	rank int    // the lower, the more telling
}

// with returns the plan with one more fault. Its name begins with that of the request or event.
func (p plan) with(name string, rank int, f fault) plan {
	return plan{name: path.Join(p.name, name), steps: p.steps, calm: p.calm, more: p.more - 1, rank: rank,
		kind: f.at.Kind + strings.TrimPrefix(name, f.at.String()), faults: append(slices.Clip(p.faults), f)}
}

// fault is one thing that goes wrong in a case.
type fault struct {
	hook
	at      Request // or event
	hurry   bool    // the users take their next step meanwhile
	forGood bool    // it happens to all later requests that are about the same, too
}

// in returns the hook that lets the fault happen in a world.
func (f fault) in(w *World) hook {
	f.matches = func(of Request) bool {
		switch {
		case f.at.String() == of.String():
			w.mark("fault", f.what)
		case !f.forGood || f.at.about() != of.about() ||
			cmp.Or(of.Process-f.at.Process, of.Nth-f.at.Nth) < 0: // it came before
			return false
		}
		if f.hurry {
			w.hurryUp()
		}
		return true
	}
	return f.hook
}

// The places of a fault of a request.
const (
	before = "before" // the request is made
	after  = "after"  // the request, and before the answer
)

// around returns what happens in place of a request, with a pause at a place.
func around(
	place string, pause func(*World, *process),
) func(*World, *process, call) (*apiserver.Response, error) {
	return func(w *World, p *process, do call) (*apiserver.Response, error) {
		if place == before {
			pause(w, p)
			return do()
		}
		response, err := do()
		pause(w, p)
		return response, err
	}
}

// surprises disturbs each event of the watches. Only -explore.every tries the rare ways.
func (x *explorer) surprises(p plan, r *result) (plans []plan) {
	begin := 1 + slices.IndexFunc(r.events, func(e Request) bool {
		return len(p.faults) > 0 && e.String() == p.faults[0].at.String()
	})
	for _, e := range r.events[begin:] {
		for _, way := range []struct {
			name, what string
			rare       bool
			event      func(*stream, watch.Event)
		}{
			{"unseen", "was never shown", true, func(s *stream, _ watch.Event) { s.dropped = true }},
			{"silence-from-here", "was never shown, and nothing after it", false,
				func(s *stream, _ watch.Event) { s.lost = true }},
			{"late-from-here", "was shown only in the end, with all after it", false,
				func(s *stream, e watch.Event) {
					s.held = true
					s.deliver(e)
				}},
			{"expired", "never came: the watch broke there with the error 410", true,
				func(s *stream, _ watch.Event) { s.process.world.expire(s.line) }},
		} {
			if way.rare && !*every {
				continue
			}
			q := p.with(e.String()+"/"+way.name, 1, fault{at: e,
				hook: hook{what: "the event " + e.String() + " " + way.what, event: way.event}})
			q.rest = time.Minute
			plans = append(plans, q)
		}
	}
	return plans
}

// slow lets each write take more than a second, so that a time is another one in each write, even if
// it has no fractions of seconds.
func (x *explorer) slow(p plan, _ *result) []plan {
	p.name, p.slow, p.more = path.Join(p.name, "writes"), true, 0
	return []plan{p}
}

// How long a request or an event waits.
const (
	// Meanwhile, everybody else does all that they can do at once.
	moment = "a-moment"
	// The controller also looks again at what it wrote.
	while = "a-while"
	// The users also take their next step, which does not wait for its time.
	aStep = "a-step"
	// The worker gives up, and goes on. But the request is under way, and arrives after the next step.
	tooLong = "too-long"
)

// schedules varies the order in which workers, informers and users do things. Each request waits,
// before it is made or before its answer comes, and each event of an informer. Meanwhile all others
// go on: the other workers, the other informers and, if the wait is long enough, the users. Without
// -explore.every, it takes only the writes, and only the long waits. So does a second wait, which
// would otherwise take hours.
func (x *explorer) schedules(p plan, r *result) (plans []plan) {
	few := len(p.faults) > 0 || !*every
	add := func(of Request, place string, waits ...string) {
		for _, wait := range waits {
			short := wait == moment || wait == while
			if few && short || len(p.faults) > 0 && p.faults[0].at.String() == of.String() {
				continue
			}
			plans = append(plans, x.schedule(p, r, of, place, wait))
		}
	}
	for _, of := range r.requests {
		if few && !of.write {
			continue
		}
		add(of, before, aStep, moment, while)
		add(of, after, aStep, moment, while)
		if of.write || of.verb == "get" {
			add(of, before, tooLong)
		}
	}
	if *every {
		for _, e := range r.events {
			add(e, "event", aStep, moment, while)
		}
	}
	return plans
}

func (x *explorer) schedule(p plan, r *result, of Request, place, wait string) plan {
	d := map[string]time.Duration{moment: time.Millisecond, while: 2 * time.Second,
		aStep:   3 * time.Second,
		tooLong: max(r.untilStep(of, x.controller.Delay), x.controller.Timeout) + 2*time.Second}[wait]
	f := fault{at: of, hurry: wait == aStep}
	f.what = fmt.Sprintf(map[string]string{before: "the request %s came %v late",
		after: "the answer to %s came %v late", "event": "the event %s came %v late"}[place], of, d)
	if f.hurry {
		f.what += ", and meanwhile the users took their next step"
	}
	f.request = around(place, func(*World, *process) { time.Sleep(d) })
	if wait == tooLong {
		f.request = func(_ *World, _ *process, do call) (*apiserver.Response, error) {
			time.AfterFunc(d, func() { _, _ = do() })
			time.Sleep(x.controller.Timeout)
			return nil, &url.Error{Op: "Any", URL: "https://injected", Err: context.DeadlineExceeded}
		}
	}
	f.event = func(s *stream, e watch.Event) {
		s.late = true
		time.AfterFunc(d, func() {
			s.process.world.mu.Lock()
			defer s.process.world.mu.Unlock()
			s.late = false
			s.deliver()
		})
		s.deliver(e)
	}
	rank := 2
	if wait == tooLong {
		rank = 0
	}
	p = p.with(strings.Join([]string{of.String(), place, wait}, "/"), rank, f)
	p.rest = time.Minute
	if wait == moment {
		p.more = 0
	}
	if f.hurry || wait == tooLong {
		p.judge = func(got, _ *result) { got.pardon(of) }
	}
	return p
}

// pardon accepts deletions if a request was late that asks before it, or deletes: then something may
// be deleted although the users have just asked for it again. No controller can call that back, and no
// API server compares the owner when it deletes something.
func (r *result) pardon(late Request) {
	if late.verb == "get" || late.verb == "list" || strings.HasPrefix(late.verb, "delete") {
		r.deletions = nil
	}
}

// untilStep returns how long it takes until the users take their next step after a request, or end.
func (r *result) untilStep(of Request, end time.Duration) time.Duration {
	for _, m := range r.marks {
		if m.what == "step" && m.at.After(of.At) {
			return m.at.Sub(of.At).Round(time.Second)
		}
	}
	return end
}
