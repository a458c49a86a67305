package explore

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/sample-controller/explore/apiserver"
)

// takeover is how long a new process works beside a frozen one, before users take their next step, and
// after it.
const takeover = 2 * time.Second

// twins freezes the process at each request, and lets another one take over. Meanwhile, the users take
// their next step. Then the first process goes on with what it had in mind, and ends a moment or a while
// later. Leader election cannot prevent that: nothing tells a process that it was frozen.
//
// Without -explore.every, it takes the first write of each kind, and the process ends a moment later. Gets,
// and the moment after a request, are taken only if there is something outside. Otherwise, they are like
// the moment before the next write.
func (x *explorer) twins(p plan, r *result) (plans []plan) {
	tried := map[string]bool{}
	for _, at := range r.requests {
		isGet := at.verb == "get" && !isSideshow(at.resource) && (*every || x.controller.Outside != nil)
		if len(p.faults) > 0 || x.controller.OneProcess || !at.write && !isGet || !*every && tried[at.Kind] {
			continue
		}
		tried[at.Kind] = true
		plans = append(plans, x.twin(p, at, before, moment))
		always := *every && at.write
		if always || x.controller.Outside != nil {
			plans = append(plans, x.twin(p, at, after, moment))
		}
		if always {
			plans = append(plans, x.twin(p, at, before, while), x.twin(p, at, after, while))
		}
	}
	return plans
}

// twin returns the plan with a process that is frozen at a request, and how long it then goes on.
func (x *explorer) twin(p plan, at Request, place, end string) plan {
	request := around(place, func(w *World, p *process) { w.replace(p, end) })
	p = p.with(strings.Join([]string{at.String(), place, end}, "/"), 2, fault{at: at, hook: hook{request: request,
		what: fmt.Sprintf("the process was frozen %s its request %s until another one had taken over and "+
			"users had taken their next step. It ended %s later", place, at, strings.Replace(end, "-", " ", 1))}})
	p.rest, p.more = time.Minute, 0
	p.judge = func(got, _ *result) {
		got.unrest = nil // if both want different things, it ends with the first one
		got.pardon(at)
	}
	return p
}

// replace freezes a process while another one takes over. It returns when the frozen process goes on.
//
// The frozen process may then believe for a while that it leads, as if its clock had stood still: the
// other process took over within seconds, because the Lease was taken away. Or the frozen process
// notices at once that it leads no more, and learns nothing new before it ends.
func (w *World) replace(p *process, end string) {
	goOn := make(chan struct{})
	w.mu.Lock()
	p.frozen, p.deaf = goOn, true
	w.mu.Unlock()
	for _, lease := range w.State().all("leases.coordination.k8s.io") { // the new process takes it at once
		w.update(lease, func(o *object) { unstructured.RemoveNestedField(o.Object, "spec", "holderIdentity") })
	}
	w.start()
	time.Sleep(takeover)
	w.hurryUp()
	time.Sleep(takeover)
	w.mu.Lock()
	defer w.mu.Unlock()
	close(goOn)
	p.frozen = nil
	rest := 10 * w.latency
	if end == while {
		rest, p.deaf = 15*time.Second, false
		w.letWatchesGo()
	}
	time.AfterFunc(rest, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if !p.dead {
			w.end(p, time.Second)
		}
	})
}

// crashes lets the process die at each request. A new process must find what is to be done, and
// nothing may be created or deleted twice. The new process starts at once, or only after the next
// step. Without -explore.every, it takes only the writes: after another request, the objects are
// the same as before it.
//
// If the process dies when it has the answer, but has done nothing more, that looks the same from
// outside as if it dies before the answer: what it knew is lost.
func (x *explorer) crashes(p plan, r *result) (plans []plan) {
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
		w.end(p, next)
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

// lags restarts the controller after each step, with an API server that lags: what it lists is an
// older state of one resource, or of all. It catches up one step later, or in the end. Without
// -explore.every, it takes only the latter, and only the scenarios in which the controller deletes
// something: elsewhere, an old state makes it do less harm.
//
// The API server has no streams, as if its feature WatchList were off: a stream waits until it shows
// the newest state. But after most errors of a stream, client-go lists, and takes an old list, too:
// Reflector.ListAndWatchWithContext in its tools/cache.
func (x *explorer) lags(p plan, r *result) (plans []plan) {
	deletes := slices.ContainsFunc(slices.Collect(maps.Keys(r.written)),
		func(d deed) bool { return d.what == "deleted" })
	if len(p.faults) > 0 || !*every && !deletes {
		return nil
	}
	for step, now := range r.steps {
		behind := map[string]int{}
		for _, c := range slices.Backward(r.changes) {
			resource := c.request.Resource.Resource
			isWatched := slices.ContainsFunc(r.requests, func(q Request) bool { return q.Kind == "watch-"+resource })
			if c.Revision > now || !isWatched {
				continue
			}
			for _, of := range []string{resource, ""} { // all
				behind[of]++
				plans = append(plans, p.lag(step+1, of, behind[of], c.Revision-1)...)
			}
		}
	}
	return plans
}

// lag returns the plans with a process that begins after a step with lists of a resource, or of all if
// it is "", as they were at a revision.
func (p plan) lag(step int, resource string, behind int, revision int64) (plans []plan) {
	what := fmt.Sprintf("%s-%d-writes-behind", cmp.Or(resource, "all"), behind)
	restart := played(Step{"(a new process)", func(w *World) {
		w.server.DisableStreams()
		w.mu.Lock()
		defer w.mu.Unlock()
		for name, l := range w.lines {
			if resource == "" || resource == name {
				l.past = revision
			}
		}
		w.mark("fault", "a new process got old lists: "+what)
		w.end(w.process, time.Millisecond)
	}})
	q := plan{name: fmt.Sprintf("%s/step-%d/%s", p.name, step+1, what), calm: p.calm, rank: 1,
		kind: "lag " + resource}
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
