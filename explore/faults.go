package explore

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
)

// fault is one thing that goes wrong in a case.
type fault struct {
	name string // of the case
	at   string // the request or the event at which it happens
	what string // in words

	// request is called in place of the request; do lets that happen. event is what becomes of the
	// event, and wait how late it is.
	request func(w *World, p *process, do func() error) error
	event   treatment
	wait    time.Duration
	hurry   bool   // the users take their next step meanwhile
	forGood bool   // it happens to all later requests that are about the same, too
	about   string // what it has happened to
	// steps, if it is set, returns what is done in place of the steps.
	steps func([]Step) []Step

	rest  time.Duration // how long it may still happen after the last step
	again bool          // a second one may follow
	mark  int           // where that one may be
	judge func(got, calm *result)
}

// kind is a kind of faults.
type kind struct {
	name string
	// faults returns what can go wrong in a run, after what has gone wrong in it already.
	faults func(s *Scenario, r *result, first []fault) []fault
	// strict says that each write that the newest state does not ask for is wrong. Otherwise, only
	// deletions are: the controller cannot know yet that something is no longer asked for.
	strict bool
}

// The places of a fault of a request.
const (
	before = "before" // the request is made
	after  = "after"  // the request, and before the answer
)

// short says that a scenario is short enough for two faults.
func (s *Scenario) short() bool { return len(s.Steps) <= 3 }

// crashes lets the process die at each request. A new process must find what is to be done, and
// nothing may be created or deleted twice. The new process starts at once, or only after the next
// step. Without -explore.every, it takes only the writes: after another request, the objects are
// the same as before it.
//
// If the process dies when it has the answer, but has done nothing more, that looks the same from
// outside as if it dies before the answer: what it knew is lost.
func (x *explorer) crashes(_ *Scenario, r *result, first []fault) (faults []fault) {
	for _, late := range []bool{false, true} {
		for _, at := range r.requests {
			if !*every && !at.write || len(first) > 0 && (late || at.Process <= first[0].mark) {
				continue
			}
			faults = append(faults, crash(at, before, late), crash(at, after, late))
		}
	}
	return faults
}

// crash returns the fault that the process dies at a request.
func crash(at Request, place string, late bool) fault {
	f := fault{name: at.String() + "/" + place, at: at.String(), again: !late, mark: at.Process,
		what: fmt.Sprintf("the process died %s its request %s", place, at), judge: more}
	if late {
		f.name += "-for-longer"
		f.what += ", and the next one started only after the next step"
	}
	f.request = func(w *World, p *process, do func() error) error {
		if place == after {
			_ = do()
		}
		w.kill(p, late)
		if !late {
			time.AfterFunc(time.Millisecond, w.start)
		}
		return errDead
	}
	return f
}

// more notes what was created or deleted more often than in the undisturbed run.
func more(got, calm *result) {
	for resource, n := range got.written {
		want := calm.written[resource]
		for _, did := range []struct {
			what      string
			got, want int
		}{{"created", n.created, want.created}, {"deleted", n.deleted, want.deleted}} {
			if did.got > did.want {
				got.problems = append(got.problems, fmt.Sprintf("the controller %s %d %s, but only %d if "+
					"nothing goes wrong", did.what, did.got, resource.Resource, did.want))
			}
		}
	}
}

// surprises disturbs each event of the watches. Only -explore.every tries the rare ways.
func (x *explorer) surprises(_ *Scenario, r *result, first []fault) (faults []fault) {
	begin := 0
	if len(first) > 0 {
		begin = min(first[0].mark, len(r.events))
	}
	for i, e := range r.events[begin:] {
		for _, f := range []fault{
			{name: "unseen", what: "was never shown", event: drop},
			{name: "silence-from-here", what: "was never shown, and nothing after it", event: lose},
			{name: "late-from-here", what: "was shown only in the end, with all after it", event: hold},
			{name: "expired", what: "never came: the watch broke there with the error 410", event: expire},
		} {
			if rare := f.event == drop || f.event == expire; rare && !*every {
				continue
			}
			f.name, f.at, f.what = e.String()+"/"+f.name, e.String(), "the event "+e.String()+" "+f.what
			f.again, f.mark, f.rest = true, begin+i+1, time.Minute
			faults = append(faults, f)
		}
	}
	return faults
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
func (x *explorer) schedules(_ *Scenario, r *result, first []fault) (faults []fault) {
	few := len(first) > 0 || !*every
	add := func(of, place string, waits ...string) {
		for _, wait := range waits {
			if len(first) == 0 || first[0].at != of {
				faults = append(faults, x.schedule(of, place, wait))
			}
		}
	}
	for _, r := range r.requests {
		of := r.String()
		switch {
		case few && !r.write:
			continue
		case few:
			add(of, before, aStep, tooLong)
		case r.write || r.verb == "get":
			add(of, before, aStep, tooLong, moment, while)
		default:
			add(of, before, aStep, moment, while)
		}
		add(of, after, aStep)
		if !few {
			add(of, after, moment, while)
		}
	}
	for _, e := range r.events {
		switch {
		case !few:
			add(e.String(), "event", aStep, moment, while)
		case *every:
			add(e.String(), "event", aStep)
		}
	}
	return faults
}

// schedule returns the fault that a request or an event waits.
func (x *explorer) schedule(of, place, wait string) fault {
	f := fault{name: strings.Join([]string{of, place, wait}, "/"), at: of, again: wait != moment,
		rest: time.Minute, event: late, hurry: wait == aStep, wait: map[string]time.Duration{
			moment: time.Millisecond, while: 2 * time.Second, aStep: 3 * time.Second,
			tooLong: x.controller.Delay + 2*time.Second}[wait]}
	f.what = fmt.Sprintf(map[string]string{before: "the request %s came %v late",
		after: "the answer to %s came %v late", "event": "the event %s came %v late"}[place], of, f.wait)
	if f.hurry {
		f.what += ", and meanwhile the users took their next step"
	}
	f.request = func(_ *World, _ *process, do func() error) error {
		switch {
		case wait == tooLong:
			time.AfterFunc(f.wait, func() { _ = do() })
			time.Sleep(x.controller.Timeout)
			return &url.Error{Op: "Any", URL: "https://injected", Err: context.DeadlineExceeded}
		case place == before:
			time.Sleep(f.wait)
			return do()
		}
		err := do()
		time.Sleep(f.wait)
		return err
	}
	// Something may be deleted although the users have just asked for it again: the controller has
	// asked before, and its deletion is under way. No controller can call that back, and no API server
	// compares the owner when it deletes something.
	verb, _, _ := strings.Cut(of, "-")
	if (verb == "get" || verb == "delete") && (f.hurry || wait == tooLong) {
		f.judge = func(got, _ *result) {
			got.unasked = slices.DeleteFunc(got.unasked, func(u unasked) bool { return u.deletion })
		}
	}
	return f
}

// lags restarts the controller after each step, with an API server that lags: what it lists is an
// older state of one resource, or of all. It catches up one step later, or in the end. Without
// -explore.every, it takes only the latter, and only the scenarios in which the controller deletes
// something: elsewhere, an old state makes it do less harm.
//
// The API server has no streams, as if its feature WatchList were off: a stream waits until it
// shows the newest state.
func (x *explorer) lags(s *Scenario, calm *result, first []fault) (faults []fault) {
	deletes := slices.ContainsFunc(slices.Collect(maps.Values(calm.written)),
		func(n counts) bool { return n.deleted > 0 })
	if len(first) > 0 || !*every && !deletes {
		return nil
	}
	for step := range s.steps() {
		revisions := calm.history[step]
		for behind := 1; ; behind++ {
			pasts := map[string]map[string]int64{"all": {}}
			for resource, all := range revisions {
				if n := len(all); behind <= n && calm.watches(resource) {
					past := all[n-behind] - 1
					pasts[resource], pasts["all"][resource] = map[string]int64{resource: past}, past
				}
			}
			if len(pasts) == 1 {
				break
			}
			for _, name := range slices.Sorted(maps.Keys(pasts)) {
				what := fmt.Sprintf("%s-%d-writes-behind", name, behind)
				faults = append(faults, lag(step+1, what, pasts[name])...)
			}
		}
	}
	return faults
}

// watches reports whether the controller has watched a resource.
func (r *result) watches(resource string) bool {
	return slices.ContainsFunc(r.requests, func(request Request) bool {
		return request.Kind == "watch-"+resource
	})
}

// lag returns the faults that a process begins after a step with lists of the past.
func lag(step int, what string, past map[string]int64) (faults []fault) {
	f := fault{name: fmt.Sprintf("step-%d/%s", step, what)}
	f.what = "a new process got old lists: " + what
	restart := Step{"restart", func(w *World) {
		w.mu.Lock()
		old := w.process
		w.past = maps.Clone(past)
		w.hit(f.what)
		w.mu.Unlock()
		w.kill(old, false)
		w.start()
	}}
	f.steps = func(steps []Step) []Step { return slices.Insert(steps, step, restart) }
	if *every {
		short := f
		short.name += "-for-a-step"
		short.steps = func(steps []Step) []Step {
			return slices.Insert(f.steps(steps), min(step+2, len(steps)), LetWatchesGo)
		}
		faults = append(faults, short)
	}
	return append(faults, f)
}
