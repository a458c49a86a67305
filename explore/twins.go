package explore

import (
	"fmt"
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
// Without -explore.every, it takes the first write of each kind, and the process ends a moment later. And
// it takes what comes after a write only if there is something outside: otherwise, that is as before
// the next write.
func (x *families) twins(p plan, r *result) (plans []plan) {
	tried := map[string]bool{}
	for _, at := range r.requests {
		if len(p.faults) > 0 || x.controller.OneProcess || !*every && (!at.write || tried[at.Kind]) {
			continue
		}
		tried[at.Kind] = true
		if at.write || at.verb == "get" {
			plans = append(plans, x.twin(p, at, before, moment))
		}
		if at.write && (*every || x.controller.Outside != nil) {
			plans = append(plans, x.twin(p, at, after, moment))
		}
		if at.write && *every {
			plans = append(plans, x.twin(p, at, before, while), x.twin(p, at, after, while))
		}
	}
	return plans
}

// twin returns the plan with a process that is frozen at a request, and how long it then goes on.
func (x *families) twin(p plan, at Request, place, end string) plan {
	request := func(w *World, p *process, do call) (*apiserver.Response, error) {
		if place == before {
			w.replace(p, end)
			return do()
		}
		response, err := do()
		w.replace(p, end)
		return response, err
	}
	p = p.with(strings.Join([]string{at.String(), place, end}, "/"), 2, fault{at: at, hook: hook{request: request,
		what: fmt.Sprintf("the process was frozen %s its request %s until another one had taken over and "+
			"users had taken their next step. It ended %s later", place, at, strings.Replace(end, "-", " ", 1))}})
	p.rest, p.more = time.Minute, 0
	judge := pardon(at)
	p.judge = func(got, calm *result) {
		// If both want different things, it ends with the first one.
		got.unrest = nil
		if judge != nil {
			judge(got, calm)
		}
	}
	return p
}

// replace freezes a process while another one takes over. It returns when the first one goes on.
//
// That one may still believe for a while that it leads, as if its clock had stood still: the other one
// takes over within seconds, because the Lease is taken away. Or it notices that at once, and knows
// nothing new before it ends.
func (w *World) replace(p *process, end string) {
	goOn := make(chan struct{})
	w.mu.Lock()
	p.frozen, p.deaf = goOn, true
	w.mu.Unlock()
	w.takeLeases()
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
		for _, l := range w.lines {
			for _, s := range l.streams {
				s.deliver()
			}
		}
	}
	time.AfterFunc(rest, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if !p.dead {
			w.end(p, "It was frozen, and another process has taken over.", time.Second)
		}
	})
}

// takeLeases lets nobody hold a Lease, so that a new process can take it.
func (w *World) takeLeases() {
	for _, lease := range w.State().all("leases.coordination.k8s.io") {
		w.update(lease, func(o *object) { unstructured.RemoveNestedField(o.Object, "spec", "holderIdentity") })
	}
}
