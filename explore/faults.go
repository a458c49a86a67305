package explore

import (
	"cmp"
	"context"
	"fmt"
	"maps"
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
	shared  bool          // only one shard has it
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
			w.shoot(Shot{What: "fault", Text: f.what})
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

// families makes the cases of a controller in which something goes wrong. Each of its methods for a
// family returns what else can go wrong in a plan of which that is the result.
type families struct {
	controller *Controller
	tried      map[string]bool // kinds of requests that have had every error
	outcomes   []Outcome
}

// The places of a fault of a request.
const (
	before = "before" // the request is made
	after  = "after"  // the request, and before the answer
)

// crashes lets the process die at each request. A new process must find what is to be done, and
// nothing may be created or deleted twice. The new process starts at once, or only after the next
// step. Without -explore.every, it takes only the writes: after another request, the objects are
// the same as before it.
//
// If the process dies when it has the answer, but has done nothing more, that looks the same from
// outside as if it dies before the answer: what it knew is lost.
func (x *families) crashes(p plan, r *result) (plans []plan) {
	for _, at := range r.requests {
		if !*every && !at.write || len(p.faults) > 0 && at.Process <= p.faults[0].at.Process {
			continue
		}
		plans = append(plans, p.crash(at, before, false), p.crash(at, after, false))
		if len(p.faults) == 0 {
			plans = append(plans, p.crash(at, before, true), p.crash(at, after, true))
		}
	}
	return plans
}

// crash returns the plan with a process that dies at a request.
func (p plan) crash(at Request, place string, late bool) plan {
	name, next := at.String()+"/"+place, time.Millisecond
	what := fmt.Sprintf("the process died %s its request %s", place, at)
	rank := 0 // without these, no controller is explored
	if late {
		name, next, rank = name+"-for-longer", 0, 1
		what += ", and the next one started only after the next step"
	}
	request := func(w *World, p *process, do call) (*apiserver.Response, error) {
		if place == after {
			_, _ = do()
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.end(p, "It died.", next)
		return nil, errDead
	}
	p = p.with(name, rank, fault{at: at, hook: hook{what: what, request: request}})
	p.strict, p.judge = true, more
	if late {
		p.more = 0
	}
	return p
}

// more notes what was created or deleted more often than in the undisturbed run.
func more(got, calm *result) {
	for d, n := range got.written {
		if want := calm.written[d]; n > want {
			got.problems = append(got.problems, fmt.Sprintf("the controller %s %d %s, but only %d if "+
				"nothing goes wrong", d.what, n, d.resource, want))
		}
	}
}

// surprises disturbs each event of the watches. Only -explore.every tries the rare ways.
func (x *families) surprises(p plan, r *result) (plans []plan) {
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
func (x *families) slow(p plan, _ *result) []plan {
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
func (x *families) schedules(p plan, r *result) (plans []plan) {
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

// schedule returns the plan with a request or an event that waits.
func (x *families) schedule(p plan, r *result, of Request, place, wait string) plan {
	d := map[string]time.Duration{moment: time.Millisecond, while: 2 * time.Second,
		aStep:   3 * time.Second,
		tooLong: max(r.untilStep(of, x.controller.Delay), x.controller.Timeout) + 2*time.Second}[wait]
	f := fault{at: of, hurry: wait == aStep}
	f.what = fmt.Sprintf(map[string]string{before: "the request %s came %v late",
		after: "the answer to %s came %v late", "event": "the event %s came %v late"}[place], of, d)
	if f.hurry {
		f.what += ", and meanwhile the users took their next step"
	}
	f.request = func(_ *World, _ *process, do call) (*apiserver.Response, error) {
		switch {
		case wait == tooLong:
			time.AfterFunc(d, func() { _, _ = do() })
			time.Sleep(x.controller.Timeout)
			return nil, &url.Error{Op: "Any", URL: "https://injected", Err: context.DeadlineExceeded}
		case place == before:
			time.Sleep(d)
			return do()
		}
		response, err := do()
		time.Sleep(d)
		return response, err
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
		p.judge = pardon(of)
	}
	return p
}

// pardon accepts deletions if a request was late that asks before it, or deletes: then something may
// be deleted although the users have just asked for it again. No controller can call that back, and no
// API server compares the owner when it deletes something.
func pardon(late Request) func(got, calm *result) {
	if late.verb != "get" && late.verb != "delete" {
		return nil
	}
	return func(got, _ *result) { got.deletions = nil }
}

// untilStep returns how long it takes until the users take their next step after a request, or end.
func (r *result) untilStep(of Request, end time.Duration) time.Duration {
	for _, s := range r.film {
		if s.What == "step" && s.At.After(of.At) {
			return s.At.Sub(of.At).Round(time.Second)
		}
	}
	return end
}

// lags restarts the controller after each step, with an API server that lags: what it lists is an
// older state of one resource, or of all. It catches up one step later, or in the end. Without
// -explore.every, it takes only the latter, and only the scenarios in which the controller deletes
// something: elsewhere, an old state makes it do less harm.
//
// The API server has no streams, as if its feature WatchList were off: a stream waits until it shows
// the newest state. But after most errors of a stream, client-go lists, and takes an old list, too:
// Reflector.ListAndWatchWithContext in its tools/cache.
func (x *families) lags(p plan, r *result) (plans []plan) {
	deletes := slices.ContainsFunc(slices.Collect(maps.Keys(r.written)),
		func(d deed) bool { return d.what == "deleted" })
	if len(p.faults) > 0 || !*every && !deletes {
		return nil
	}
	watched := map[string]bool{}
	for _, request := range r.requests {
		watched[request.Kind] = true
	}
	for step, now := range r.steps {
		revisions := map[string][]int64{}
		for _, c := range r.changes {
			if resource := c.request.Resource.Resource; c.Revision <= now {
				revisions[resource] = append(revisions[resource], c.Revision)
			}
		}
		for behind := 1; ; behind++ {
			pasts := map[string]map[string]int64{"all": {}}
			for resource, all := range revisions {
				if n := len(all); behind <= n && watched["watch-"+resource] {
					past := all[n-behind] - 1
					pasts[resource], pasts["all"][resource] = map[string]int64{resource: past}, past
				}
			}
			if len(pasts) == 1 {
				break
			}
			for _, name := range slices.Sorted(maps.Keys(pasts)) {
				what := fmt.Sprintf("%s-%d-writes-behind", name, behind)
				plans = append(plans, p.lag(step+1, what, pasts[name])...)
			}
		}
	}
	return plans
}

// lag returns the plans with a process that begins after a step with lists of the past.
func (p plan) lag(step int, what string, past map[string]int64) (plans []plan) {
	restart := played(Step{"(a new process)", func(w *World) {
		w.server.DisableStreams()
		w.mu.Lock()
		defer w.mu.Unlock()
		for resource, revision := range past {
			w.line(resource).past = revision
		}
		w.shoot(Shot{What: "fault", Text: "a new process got old lists: " + what})
		w.end(w.process, "It died.", time.Millisecond)
	}})
	q := plan{name: fmt.Sprintf("%s/step-%d/%s", p.name, step+1, what), calm: p.calm, rank: 1,
		kind: fmt.Sprint("lag ", slices.Sorted(maps.Keys(past)))}
	q.steps = slices.Insert(slices.Clone(p.steps), step, restart)
	if *every {
		short := q
		short.name += "-for-a-step"
		short.steps = slices.Insert(slices.Clone(q.steps), min(step+2, len(q.steps)),
			played(Step{"(" + LetWatchesGo.Name + ")", LetWatchesGo.Do}))
		plans = append(plans, short)
	}
	return append(plans, q)
}
