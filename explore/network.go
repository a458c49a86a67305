package explore

import (
	"context"
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/sample-controller/explore/apiserver"
)

// Serve serves a request of the process, unless that is dead.
func (p *process) Serve(
	ctx context.Context, r *apiserver.Request, do func() (*apiserver.Response, error),
) (*apiserver.Response, error) {
	w := p.world
	w.mu.Lock()
	if p.dead {
		w.mu.Unlock()
		return nil, errDead
	}
	request := p.note(describe(r))
	w.requests = append(w.requests, request)
	w.shoot(Shot{What: "requested", Request: r, Object: r.Body})
	tooMany := p.isRestless(request)
	fault := w.faultAt(request, true)
	w.lag(r)
	w.mu.Unlock()
	w.look(r)
	if tooMany {
		time.Sleep(time.Second) // otherwise, no time would pass
	}
	type answer struct {
		response *apiserver.Response
		err      error
	}
	answers := make(chan answer, 1)
	go func() { // because the client may give up while the request waits
		var response *apiserver.Response
		happen := func() (err error) {
			w.shoot(Shot{What: "passed", Request: r})
			response, err = w.answer(r, request, do)
			return err
		}
		var a answer
		if fault == nil {
			a.err = happen()
		} else {
			a.err = fault.request(w, p, happen)
		}
		if a.err == nil {
			a.response = response
		}
		w.shoot(answered(r, a.response, a.err, fault != nil))
		answers <- a
	}()
	select {
	case a := <-answers:
		return a.response, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// faultAt returns the fault of a request or, if ofRequest is false, of an event, or nil. w.mu must
// be held.
func (w *World) faultAt(at Request, ofRequest bool) *fault {
	for i := range w.faults {
		f := &w.faults[i]
		if ofRequest && f.request == nil || !ofRequest && f.event == show {
			continue
		}
		again := f.forGood && f.about == at.about()
		if f.at != at.String() && !again {
			continue
		}
		if !again {
			w.hit(f.what)
			f.about = at.about()
		}
		if f.hurry {
			w.hurryUp()
		}
		return f
	}
	return nil
}

// isRestless reports whether a process makes requests without end in one moment. w.mu must be held.
func (p *process) isRestless(r Request) bool {
	const most = 5000
	if !r.At.Equal(p.moment) {
		p.moment, p.atOnce = r.At, 0
	}
	if p.atOnce++; p.atOnce < most {
		return len(p.world.restless) > 0
	}
	if about := r.about(); !slices.Contains(p.world.restless, about) {
		p.world.restless = append(p.world.restless, about)
	}
	return true
}

// answer answers a request as the API server does, unless there is trouble.
func (w *World) answer(
	r *apiserver.Request, request Request, do func() (*apiserver.Response, error),
) (*apiserver.Response, error) {
	if !request.write {
		return do()
	}
	w.serving.Lock()
	defer w.serving.Unlock()
	w.mu.Lock()
	var trouble *Answer
	if len(w.troubles) > 0 {
		trouble, w.troubles = &w.troubles[0], w.troubles[1:]
	}
	refused := w.refused[r.Resource.Resource] && r.Verb != "delete" && r.Subresource == ""
	w.mu.Unlock()
	switch {
	case trouble != nil && trouble.Happens:
		_, _ = w.accept(r, do)
		return nil, trouble.Err
	case trouble != nil:
		return nil, trouble.Err
	case refused:
		return nil, apierrors.NewForbidden(r.Resource.GroupResource(), r.Name,
			errors.New("refused by a policy"))
	}
	return w.accept(r, do)
}

// accept lets a write happen, and judges what has changed.
func (w *World) accept(
	r *apiserver.Request, do func() (*apiserver.Response, error),
) (*apiserver.Response, error) {
	before := len(w.server.History(r.Resource))
	response, err := do()
	if err == nil {
		for _, write := range w.server.History(r.Resource)[before:] {
			w.judge(r, write)
		}
	}
	return response, err
}

// judge counts a write of the controller, and notes it if something speaks against it.
func (w *World) judge(r *apiserver.Request, write apiserver.Write) {
	what := Write{
		Verb: r.Verb, Resource: r.Resource.Resource, Subresource: r.Subresource,
		Old: write.Old, New: write.New,
	}
	reason := ""
	if w.isForeign(write.Old) {
		reason = "it belongs to somebody else"
	} else if w.controller.Always != nil {
		reason = w.controller.Always(what, w.State())
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	counts := w.written[r.Resource]
	switch write.Type {
	case watch.Added:
		counts.created++
		w.own[string(write.New.GetUID())] = true
	case watch.Deleted:
		counts.deleted++
	}
	w.written[r.Resource] = counts
	if reason != "" {
		deletion := r.Verb == "delete" // it is never right
		w.unasked = append(w.unasked, unasked{deletion, what.sentence(reason)})
	}
}

// isForeign reports whether an object is somebody else's: one of Kubernetes' own kinds that the
// controller has not created.
func (w *World) isForeign(u *unstructured.Unstructured) bool {
	if u == nil || w.server.IsCustom(u.GroupVersionKind()) {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.own[string(u.GetUID())]
}
