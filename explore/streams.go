package explore

import (
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/sample-controller/explore/apiserver"
)

// line is what is between the controller and one resource of the API server.
type line struct {
	streams []*stream
	refused bool                             // admission refuses to create and to change objects
	mutate  func(*unstructured.Unstructured) // how admission changes objects, unless it is nil
	held    bool                             // events are kept back
	lost    bool                             // no event comes until the watch breaks
	dropped bool                             // a single event did not come
	past    int64                            // the revision that the next list shows, unless it is 0
}

// line returns the line of a resource. w.mu must be held.
func (w *World) line(resource string) *line {
	if w.lines[resource] == nil {
		w.lines[resource] = &line{}
	}
	return w.lines[resource]
}

// stream is a watch of a process.
type stream struct {
	*apiserver.Watch
	*line
	process *process
	begun   bool // all that was there has been shown
	late    bool // events wait for some time
	waiting []watch.Event
}

// lag makes the API server lag behind for a request, if the next list is to show the past.
// w.mu must be held.
func (w *World) lag(r *apiserver.Request) {
	switch l := w.line(r.Resource.Resource); {
	case l.past != 0 && r.Verb == "list" && r.List.ResourceVersion != "": // else it is a consistent read
		r.AsOf = l.past
	case l.past != 0 && r.Verb == "watch" && r.List.SendInitialEvents == nil:
		l.past, l.held = 0, true
	}
}

// Event shows an event to the process, or does not.
func (p *process) Event(out *apiserver.Watch, event watch.Event) {
	w := p.world
	w.mu.Lock()
	defer w.mu.Unlock()
	resource := out.Request.Resource.Resource
	s := p.stream(out, resource)
	if p.dead || out.Done() {
		return
	}
	switch {
	case !s.begun: // what was there when the watch began
		s.show(event)
		s.begun = event.Type == watch.Bookmark
		return
	case s.lost:
		return
	case event.Type == watch.Bookmark:
		s.deliver(event)
		return
	}
	object := event.Object.(*unstructured.Unstructured)
	e := p.note(Request{Kind: resource + "-" + string(event.Type),
		Name: nameIn(object.GetNamespace(), object.GetName())})
	w.events = append(w.events, e)
	if h := w.hookFor(e); h != nil {
		h.event(s, event)
	} else {
		s.deliver(event)
	}
}

// stream returns what is known of a watch. w.mu must be held.
func (p *process) stream(out *apiserver.Watch, resource string) *stream {
	l, initial := p.world.line(resource), out.Request.List.SendInitialEvents
	i := slices.IndexFunc(l.streams, func(s *stream) bool { return s.Watch == out })
	if i < 0 {
		i = len(l.streams)
		l.streams = append(l.streams, &stream{Watch: out, line: l, process: p,
			begun: initial == nil || !*initial})
	}
	return l.streams[i]
}

// deliver shows events and those that wait, or lets all wait. w.mu must be held.
func (s *stream) deliver(events ...watch.Event) {
	s.waiting = append(s.waiting, events...)
	if s.late || s.held || s.process.deaf {
		return
	}
	for _, event := range s.waiting {
		s.show(event)
	}
	s.waiting = nil
}

func (s *stream) show(event watch.Event) {
	s.Send(event)
}

// letWatchesGo shows the events that were kept back. w.mu must be held.
func (w *World) letWatchesGo() {
	for _, l := range w.lines {
		l.held, l.past = false, 0
		for _, s := range l.streams {
			s.deliver()
		}
	}
}

// expire ends the watches of a resource with an error that makes the informer list again. w.mu must
// be held.
func (w *World) expire(l *line) {
	expired := apierrors.NewResourceExpired("injected").ErrStatus
	for _, s := range l.streams {
		s.End(&expired)
	}
	l.streams, l.lost = nil, false
}
