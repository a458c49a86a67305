package explore

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/sample-controller/explore/apiserver"
)

// treatment is what becomes of an event.
type treatment int

const (
	show   treatment = iota
	drop             // it is never shown; the informer lists again in the end
	lose             // nor is anything that follows
	hold             // it is shown in the end, with everything that follows
	expire           // the watch breaks at it, and the informer lists again at once
	late             // it is shown after some time, with everything that follows until then
)

// lag makes the API server lag behind for a request, if the next list is to show the past.
// w.mu must be held.
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
	arrived := Shot{What: "arrived", Request: out.Request, Type: event.Type, Initial: !s.begun}
	arrived.Object, _ = event.Object.(*unstructured.Unstructured)
	w.shoot(arrived)
	switch {
	case !s.begun: // what was there when the watch began
		s.show(event)
		s.begun = event.Type == watch.Bookmark
		return
	case w.lost[resource]:
		return
	case event.Type == watch.Bookmark:
		s.deliver(event)
		return
	}
	e := p.note(Request{Kind: resource + "-" + string(event.Type), Name: arrived.Object.GetName()})
	w.events = append(w.events, e)
	treat := show
	f := w.faultAt(e, false)
	if f != nil {
		treat = f.event
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
		time.AfterFunc(f.wait, func() { w.catchUp(s) })
	}
	s.deliver(event)
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

// deliver shows an event, now or later. w.mu must be held.
func (s *stream) deliver(event watch.Event) {
	if s.late || s.process.world.held[s.Request.Resource.Resource] {
		s.held = append(s.held, event)
		return
	}
	s.show(event)
}

// show shows an event.
func (s *stream) show(event watch.Event) {
	shown := Shot{What: "shown", Request: s.Request, Type: event.Type, Initial: !s.begun}
	shown.Object, _ = event.Object.(*unstructured.Unstructured)
	s.process.world.shoot(shown)
	s.Send(event)
}

// release shows the events that were held back.
func (s *stream) release() {
	for _, event := range s.held {
		s.show(event)
	}
	s.held = nil
}

// catchUp shows the events of a stream that were late.
func (w *World) catchUp(s *stream) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s.late = false
	if !w.held[s.Request.Resource.Resource] {
		s.release()
	}
}

// letWatchesGo shows the events that were kept back. w.mu must be held.
func (w *World) letWatchesGo() {
	clear(w.held)
	clear(w.past)
	for _, streams := range w.streams {
		for _, s := range streams {
			s.release()
		}
	}
}

// expire ends the watches of a resource with an error that makes the informer list again. w.mu must
// be held.
func (w *World) expire(resource string) {
	expired := apierrors.NewResourceExpired("injected").ErrStatus
	for _, s := range w.streams[resource] {
		w.shoot(Shot{What: "closed", Request: s.Request, Text: expired.Message})
		s.End(&expired)
	}
	delete(w.streams, resource)
	delete(w.lost, resource)
}
