package explore

import (
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

// fault is what happens to a write of the controller.
type fault int

const (
	failed     fault = iota // an error, and nothing is written
	conflicted              // as if somebody else had written in between
	answerLost              // an error, although the write has happened
)

// Request is a request of the controller, or an event that a watch shows it.
type Request struct {
	Process int
	Kind    string // "update-foos-status", or "foos-MODIFIED" for an event
	Name    string // of the object, "a", or of the reason and the object of an Event
	Nth     int    // of these in the process
	At      time.Time

	write bool // of something but Events and Leases
	verb  string
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
	d := Request{Kind: r.Verb + "-" + r.Resource.Resource, Name: r.Name, verb: r.Verb}
	if r.Subresource != "" {
		d.Kind += "-" + r.Subresource
	}
	if r.Namespace != Namespace && r.Namespace != "" {
		d.Name = r.Namespace + "-" + d.Name
	}
	if r.Resource.Resource == "events" {
		d.Name = "" // Events are named by what they are about: their names differ from run to run
		if r.Body != nil {
			d.Name = eventName(r.Body.Object)
		}
	}
	d.write = !isSideshow(r.Resource.Resource) && r.Verb != "get" && r.Verb != "list" && r.Verb != "watch"
	return d
}

// eventName returns the reason of an Event, and the name of the object that it is about.
func eventName(event map[string]any) string {
	for _, field := range []string{"regarding", "involvedObject"} {
		if object, ok := event[field].(map[string]any); ok {
			return fmt.Sprint(event["reason"], "-", object["name"])
		}
	}
	return ""
}

// note counts a request or an event. w.mu must be held.
func (p *process) note(r Request) Request {
	p.count[r.about()]++
	r.Process, r.Nth, r.At = p.number, p.count[r.about()], time.Now()
	return r
}

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
	tooMany := p.isRestless(request)
	disturb := w.disturb
	w.lag(r)
	w.mu.Unlock()
	if tooMany {
		time.Sleep(time.Second) // otherwise, no time would pass
	}
	type answer struct {
		response *apiserver.Response
		err      error
	}
	answers := make(chan answer, 1)
	if disturb == nil {
		disturb = func(_ *process, _ Request, do func() error) error { return do() }
	}
	go func() { // because the client may give up while the request is disturbed
		var response *apiserver.Response
		err := disturb(p, request, func() (err error) {
			response, err = w.answer(r, request, do)
			return err
		})
		if err != nil {
			answers <- answer{nil, err}
			return
		}
		answers <- answer{response, nil}
	}()
	select {
	case a := <-answers:
		return a.response, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
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

// answer answers a request as the API server does, unless there is a fault for it.
func (w *World) answer(
	r *apiserver.Request, request Request, do func() (*apiserver.Response, error),
) (*apiserver.Response, error) {
	if !request.write {
		return do()
	}
	w.serving.Lock()
	defer w.serving.Unlock()
	fault, ok := w.nextFault()
	resource := r.Resource.GroupResource()
	switch {
	case ok && fault == conflicted:
		return nil, apierrors.NewConflict(resource, r.Name, errors.New("injected"))
	case ok && fault == answerLost:
		_, _ = w.accept(r, do)
		return nil, apierrors.NewTimeoutError("injected", 0)
	case ok:
		return nil, apierrors.NewTimeoutError("injected", 0)
	case w.refuses(r):
		return nil, apierrors.NewForbidden(resource, r.Name, errors.New("refused by a policy"))
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

// refuses reports whether admission refuses a write.
func (w *World) refuses(r *apiserver.Request) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.refused[r.Resource.Resource] && r.Verb != "delete" && r.Subresource == ""
}

// nextFault removes and returns the next fault.
func (w *World) nextFault() (fault, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.faults) == 0 {
		return 0, false
	}
	next := w.faults[0]
	w.faults = w.faults[1:]
	return next, true
}

// lag lets a list show an older state, if one is asked for. The watch that follows is held. w.mu
// must be held.
func (w *World) lag(r *apiserver.Request) {
	resource := r.Resource.Resource
	revision, behind := w.past[resource]
	switch {
	case behind && r.Verb == "list":
		r.AsOf = revision
	case behind && r.Verb == "watch" && r.List.SendInitialEvents == nil:
		delete(w.past, resource)
		w.held[resource] = true
	}
}

// treatment is what becomes of an event.
type treatment int

const (
	show   treatment = iota
	drop             // it is never shown; the informer lists again in the end
	lose             // nor is anything that follows
	hold             // it is shown in the end, with everything that follows
	expire           // the watch breaks at it, and the informer lists again at once
	late             // it is shown after World.lateness, with everything that follows until then
)

// stream is a watch of a process.
type stream struct {
	*apiserver.Watch
	process *process
	begun   bool // all that was there has been shown
	held    []watch.Event
	late    bool // events are held for a time
}

// Event shows an event to the process, or does not.
func (p *process) Event(out *apiserver.Watch, event watch.Event) {
	w := p.world
	w.mu.Lock()
	defer w.mu.Unlock()
	resource := out.Request.Resource.Resource
	s := w.stream(p, out, resource)
	if p.dead || out.Done() {
		return
	}
	switch {
	case !s.begun: // what was there when the watch began
		s.begun = event.Type == watch.Bookmark
		s.Send(event)
		return
	case w.lost[resource]:
		return
	case event.Type == watch.Bookmark:
		s.deliver(event, w.held[resource] || s.late)
		return
	}
	object := event.Object.(*unstructured.Unstructured)
	e := p.note(Request{Kind: resource + "-" + string(event.Type), Name: object.GetName()})
	w.events = append(w.events, e)
	treat := show
	if w.onEvent != nil {
		treat = w.onEvent(p, e)
	}
	switch treat {
	case drop:
		w.dropped[resource] = true
		return
	case lose:
		w.lost[resource] = true
		return
	case hold:
		w.held[resource] = true
	case expire:
		w.expire(resource)
		return
	case late:
		s.late = true
		time.AfterFunc(w.lateness, func() { w.catchUp(s, resource) })
	}
	s.deliver(event, w.held[resource] || s.late)
}

// stream returns what is known of a watch. w.mu must be held.
func (w *World) stream(p *process, out *apiserver.Watch, resource string) *stream {
	for _, s := range w.streams[resource] {
		if s.Watch == out {
			return s
		}
	}
	initial := out.Request.List.SendInitialEvents
	s := &stream{Watch: out, process: p, begun: initial == nil || !*initial}
	w.streams[resource] = append(w.streams[resource], s)
	return s
}

func (s *stream) deliver(event watch.Event, hold bool) {
	if hold {
		s.held = append(s.held, event)
		return
	}
	s.Send(event)
}

// release shows the events that were held back.
func (s *stream) release() {
	for _, event := range s.held {
		s.Send(event)
	}
	s.held = nil
}

// catchUp shows the events of a stream that were late.
func (w *World) catchUp(s *stream, resource string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s.late = false
	if !w.held[resource] {
		s.release()
	}
}

// letWatchesGo shows the events that were kept back.
func (w *World) letWatchesGo() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.held)
	clear(w.past)
	for _, streams := range w.streams {
		for _, s := range streams {
			s.release()
		}
	}
}

// breakWatch ends the watches of resource with an error that makes the informer list again.
func (w *World) breakWatch(resource string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.expire(resource)
}

// expire is breakWatch for a caller that holds w.mu.
func (w *World) expire(resource string) {
	expired := apierrors.NewResourceExpired("injected").ErrStatus
	for _, s := range w.streams[resource] {
		s.End(&expired)
	}
	delete(w.streams, resource)
	delete(w.lost, resource)
}

// judge counts a write of the controller, and notes it if nothing asks for it.
func (w *World) judge(r *apiserver.Request, write apiserver.Write) {
	what := Write{
		Verb: r.Verb, Resource: r.Resource.Resource, Subresource: r.Subresource,
		Old: write.Old, New: write.New,
	}
	reason := ""
	if w.isForeign(write) {
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
		w.unasked = append(w.unasked, fmt.Sprintf("%s: %s", describe(r).about(), reason))
	}
}

// isForeign reports whether an object is somebody else's: one of Kubernetes' own kinds that the
// controller has not created.
func (w *World) isForeign(write apiserver.Write) bool {
	old := write.Old
	if old == nil || w.server.IsCustom(old.GroupVersionKind()) {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.own[string(old.GetUID())]
}
