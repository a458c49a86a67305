package explore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/sample-controller/explore/apiserver"
)

// call lets a request happen, and returns its answer.
type call = func() (*apiserver.Response, error)

// Serve serves a request of the process, unless that is dead.
func (p *process) Serve(ctx context.Context, r *apiserver.Request, do call) (*apiserver.Response, error) {
	w := p.world
	moves.Add(1)
	w.mu.Lock()
	if p.dead {
		w.mu.Unlock()
		return nil, errDead
	}
	request := p.note(describe(r))
	number := len(w.requests)
	w.requests = append(w.requests, request)
	tooMany := p.isRestless(request)
	h := w.hookFor(request)
	w.lag(r)
	w.mu.Unlock()
	if tooMany {
		time.Sleep(time.Second) // otherwise, no time would pass
	}
	happen := func() (*apiserver.Response, error) {
		if request.write {
			time.Sleep(w.latency) // so that what is written with the time does not rest
		}
		p.wait()
		return w.answer(r, request, do)
	}
	serve := happen
	if h != nil {
		serve = func() (*apiserver.Response, error) { return h.request(w, p, happen) }
	}
	var response *apiserver.Response
	var err error
	answered := make(chan struct{})
	go func() { // because the client may give up while the request waits
		defer close(answered)
		response, err = serve()
		w.mu.Lock()
		defer w.mu.Unlock()
		w.requests[number].answered, w.requests[number].err = true, err
	}()
	select {
	case <-answered:
		return response, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// hook lets something else happen to requests and events of the controller.
type hook struct {
	what    string // in words
	matches func(of Request) bool
	once    bool

	// request is called in place of the request; do lets that happen. event is called in place of
	// showing the event, with w.mu held.
	request func(w *World, p *process, do call) (*apiserver.Response, error)
	event   func(s *stream, e watch.Event)
}

// hookFor returns the hook for a request or an event, or nil. w.mu must be held.
func (w *World) hookFor(of Request) *hook {
	i := slices.IndexFunc(w.hooks, func(h hook) bool { return h.matches(of) })
	if i < 0 {
		return nil
	}
	h := w.hooks[i]
	if h.once {
		w.hooks = slices.Delete(w.hooks, i, i+1)
	}
	return &h
}

// hurryUp lets users take their next step at once.
func (w *World) hurryUp() {
	select {
	case w.hurry <- struct{}{}:
	default: // they are in a hurry already
	}
}

// isRestless reports whether a process makes requests without end in one moment. w.mu must be held.
func (p *process) isRestless(r Request) bool {
	const most = 5000
	if !r.At.Equal(p.moment) {
		p.moment, p.atOnce = r.At, 0
	}
	if p.atOnce++; p.atOnce < most {
		return len(p.world.restless) > 0 || p.world.slowed
	}
	if about := r.about(); !slices.Contains(p.world.restless, about) {
		p.world.restless = append(p.world.restless, about)
	}
	return true
}

// answer answers a request as the API server does, unless admission refuses it.
func (w *World) answer(r *apiserver.Request, at Request, do call) (*apiserver.Response, error) {
	if !at.write {
		return do()
	}
	w.serving.Lock()
	defer w.serving.Unlock()
	w.mu.Lock()
	refused := w.line(r.Resource.Resource).refused &&
		!strings.HasPrefix(r.Verb, "delete") && r.Subresource == ""
	w.mu.Unlock()
	if refused {
		return nil, apierrors.NewForbidden(r.Resource.GroupResource(), r.Name,
			errors.New("refused by a policy"))
	}
	response, err := do()
	if err == nil && w.wrote != nil {
		w.wrote(r)
	}
	return response, err
}

// Request is a request of the controller, or an event that a watch shows it.
type Request struct {
	Process int
	Kind    string // "update-foos-status", or "foos-MODIFIED" for an event
	Name    string // of the object, "a", or of the reason and the object of an Event
	Nth     int    // of these in the process
	At      time.Time

	write    bool // of something but Events and Leases
	verb     string
	resource string
	answered bool
	err      error // in place of an answer
}

func (r Request) String() string {
	text := fmt.Sprintf("%s-%d", r.about(), r.Nth)
	if r.Process > 1 {
		text = fmt.Sprintf("process-%d-%s", r.Process, text)
	}
	return text
}

// about returns what several requests have in common.
func (r Request) about() string {
	if r.Name == "" {
		return r.Kind
	}
	return r.Kind + "-" + r.Name
}

// describe returns what a request is about.
func describe(r *apiserver.Request) Request {
	if r.Resource.Resource == "" {
		return Request{Kind: "get-" + strings.ReplaceAll(strings.Trim(r.Path, "/"), "/", "-")}
	}
	d := Request{Kind: r.Verb + "-" + r.Resource.Resource, Name: nameIn(r.Namespace, r.Name),
		verb: r.Verb, resource: r.Resource.GroupResource().String()}
	if r.Subresource != "" {
		d.Kind += "-" + r.Subresource
	}
	if r.Resource.Resource == "events" {
		d.Name = "" // Events are named by what they are about: their names differ from run to run
		body := cmp.Or(r.Body, &unstructured.Unstructured{}).Object
		for _, field := range []string{"involvedObject", "regarding"} {
			if name, ok, _ := unstructured.NestedString(body, field, "name"); ok {
				d.Name = fmt.Sprint(body["reason"], "-", name)
			}
		}
	}
	d.write = !isRead(r.Verb) && !isSideshow(d.resource)
	return d
}

// isRead reports whether nothing changes by a verb, or by discovery, which has none.
func isRead(verb string) bool { return slices.Contains([]string{"", "get", "list", "watch"}, verb) }

// nameIn returns the name of an object in a case, with its namespace if that is not the default.
func nameIn(namespace, name string) string {
	if namespace == Namespace || namespace == "" {
		return name
	}
	return namespace + "-" + name
}

// note counts a request or an event. w.mu must be held.
func (p *process) note(r Request) Request {
	p.count[r.about()]++
	r.Process, r.Nth, r.At = p.number, p.count[r.about()], time.Now()
	return r
}
