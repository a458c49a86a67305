package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"
)

// fault is what happens to a write of the controller.
type fault int

const (
	failed     fault = iota // an error, and nothing is written
	conflicted              // as if somebody else had written in between
	answerLost              // an error, although the write has happened
)

// request is a request of the controller, or an event that a watch shows it.
type request struct {
	process    int
	kind, name string // "update-foos-status" and "a", or "foos-MODIFIED" and "a"
	nth        int    // of these in the process
	at         time.Time
}

func (r request) String() string {
	text := fmt.Sprintf("%s-%d", r.about(), r.nth)
	if r.process > 1 {
		text = fmt.Sprintf("process-%d-%s", r.process, text)
	}
	return text
}

// about returns what several requests have in common.
func (r request) about() string {
	if r.name == "" {
		return r.kind
	}
	return r.kind + "-" + r.name
}

// isWrite reports whether the request writes a Foo or a Deployment.
func (r request) isWrite() bool {
	verb, resource, _ := strings.Cut(r.kind, "-")
	return verb != "get" && verb != "list" && verb != "watch" && resource != "events"
}

// interfere puts the world between a client of a process and its tracker.
func (w *world) interfere(p *instance, client *clienttesting.Fake) {
	tracker := slices.Clone(client.ReactionChain)
	client.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		// The client holds its lock until there is an answer, which would stop the other worker.
		client.Unlock()
		defer client.Lock()
		var answer runtime.Object
		err := w.serve(p, action, func() (err error) {
			if events, behind := w.pastOf(action); behind {
				answer = listOf(action.GetResource().Resource, events)
				return nil
			}
			for _, reactor := range tracker {
				var handled bool
				if handled, answer, err = reactor.React(action); handled {
					break
				}
			}
			return err
		})
		if err != nil {
			answer = nil
		}
		return true, answer, err
	})
	source := client.WatchReactionChain[0]
	client.PrependWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		client.Unlock()
		defer client.Lock()
		var answer watch.Interface
		err := w.serve(p, action, func() (err error) {
			answer, err = w.watchFrom(p, source, action.(clienttesting.WatchActionImpl))
			return err
		})
		if err != nil {
			answer = nil
		}
		return true, answer, err
	})
}

// describe returns what an action is about.
func describe(action clienttesting.Action) (r request) {
	r.kind = action.GetVerb() + "-" + action.GetResource().Resource
	if action.GetSubresource() != "" {
		r.kind += "-" + action.GetSubresource()
	}
	switch action := action.(type) {
	case interface{ GetObject() runtime.Object }:
		if event, ok := action.GetObject().(*eventsv1.Event); ok {
			r.name = event.Reason + "-" + event.Regarding.Name
		} else if object, err := meta.Accessor(action.GetObject()); err == nil {
			r.name = object.GetName()
		}
	case interface{ GetName() string }:
		r.name = action.GetName()
	}
	return r
}

// note counts a request or an event. w.mu must be held.
func (w *world) note(p *instance, r request) request {
	p.count[r.about()]++
	r.process, r.nth, r.at = p.number, p.count[r.about()], time.Now()
	return r
}

// serve serves a request of a process, unless that is dead.
func (w *world) serve(p *instance, action clienttesting.Action, do func() error) error {
	w.mu.Lock()
	if p.dead {
		w.mu.Unlock()
		return errDead
	}
	r := w.note(p, describe(action))
	w.requests = append(w.requests, r)
	disturb := w.disturb
	w.mu.Unlock()
	answer := func() error {
		w.serving.Lock()
		defer w.serving.Unlock()
		return w.answer(p, action, do)
	}
	if disturb == nil {
		return answer()
	}
	return disturb(p, r, answer)
}

// answer answers a request as the API server would, unless there is a fault for it.
func (w *world) answer(p *instance, action clienttesting.Action, do func() error) error {
	resource := action.GetResource()
	switch action.GetVerb() {
	case "list":
		state := w.state(resource.Resource)
		err := do()
		w.mu.Lock()
		p.listed[resource.Resource] = state
		w.mu.Unlock()
		return err
	case "watch":
		state := w.state(resource.Resource)
		w.mu.Lock()
		missed := p.listed[resource.Resource] != state
		w.mu.Unlock()
		if missed { // the tracker could not show deletions of before the watch
			return apierrors.NewResourceExpired("something has happened since the list")
		}
		return do()
	case "get":
		return do()
	}
	if resource.Resource == "events" {
		return do()
	}
	fault, ok := w.nextFault()
	switch {
	case ok && fault == conflicted:
		return apierrors.NewConflict(resource.GroupResource(), "", errors.New("injected"))
	case ok && fault == answerLost:
		_ = w.accept(action, do)
		return apierrors.NewTimeoutError("injected", 0)
	case ok:
		return apierrors.NewTimeoutError("injected", 0)
	}
	if err := w.refusal(action); err != nil {
		return err
	}
	return w.accept(action, do)
}

// state returns a text that differs before and after each write of a resource.
func (w *world) state(resource string) string {
	objects := len(w.deployments())
	if resource == "foos" {
		objects = len(w.foos())
	}
	return fmt.Sprint(w.version(resource), objects)
}

// version returns the version of the last write of a resource.
func (w *world) version(resource string) int {
	if resource == "foos" {
		return w.h.fooTracker.Version(foosGVR)
	}
	return w.h.kubeTracker.Version(deploymentsGVR)
}

// nextFault removes and returns the next fault.
func (w *world) nextFault() (fault, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.faults) == 0 {
		return 0, false
	}
	next := w.faults[0]
	w.faults = w.faults[1:]
	return next, true
}

func (w *world) inject(times int, f fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults = append(w.faults, slices.Repeat([]fault{f}, times)...)
}

// treatment is what becomes of an event.
type treatment int

const (
	show   treatment = iota
	drop             // it is never shown; the informer lists again in the end
	lose             // nor is anything that follows
	hold             // it is shown in the end, with everything that follows
	expire           // the watch breaks at it, and the informer lists again at once
	late             // it is shown after world.lateness, with everything that follows until then
)

// stream is a watch of a process.
type stream struct {
	process *instance
	out     *watch.RaceFreeFakeWatcher
	held    []watch.Event
	late    bool // events are held for a time
}

// forward returns a watch of the same events, which the world can disturb. It begins with those
// that were missed.
func (w *world) forward(
	p *instance, resource string, events watch.Interface, missed []watch.Event,
) watch.Interface {
	s := &stream{process: p, out: watch.NewRaceFreeFake()}
	for _, event := range missed {
		if event, shown := selected(event); shown {
			s.held = append(s.held, event)
		}
	}
	w.mu.Lock()
	w.streams[resource] = append(w.streams[resource], s)
	w.mu.Unlock()
	w.h.t.Cleanup(events.Stop)
	go func() {
		for event := range events.ResultChan() {
			w.mu.Lock()
			w.deliver(s, resource, event)
			w.mu.Unlock()
		}
	}()
	return s.out
}

// deliver delivers an event, or does not. w.mu must be held.
func (w *world) deliver(s *stream, resource string, event watch.Event) {
	if s.process.dead || s.out.IsStopped() || w.lost[resource] {
		return
	}
	object, err := meta.Accessor(event.Object)
	if err != nil {
		return
	}
	e := w.note(s.process, request{kind: resource + "-" + string(event.Type), name: object.GetName()})
	w.events = append(w.events, e)
	treat := show
	if w.onEvent != nil {
		treat = w.onEvent(s.process, e)
	}
	switch treat {
	case drop:
		w.dropped[resource] = true
	case lose:
		w.lost[resource] = true
	case hold:
		w.held[resource] = true
	case expire:
		w.expire(resource)
	case late:
		s.late = true
		time.AfterFunc(w.lateness, func() { w.catchUp(s, resource) })
	}
	switch {
	case w.lost[resource], treat == drop:
	case w.held[resource], s.late:
		s.held = append(s.held, event)
	default:
		s.out.Action(event.Type, event.Object)
	}
}

// catchUp shows the events of a stream that were late.
func (w *world) catchUp(s *stream, resource string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s.late = false
	if !w.held[resource] && !s.out.IsStopped() {
		s.release()
	}
}

// release shows the events that were held back.
func (s *stream) release() {
	for _, event := range s.held {
		s.out.Action(event.Type, event.Object)
	}
	s.held = nil
}

// loseWatch drops all events of resource until breakWatch is called.
func (w *world) loseWatch(resource string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lost[resource] = true
}

// holdWatch keeps all events of resource back until letWatchesGo is called.
func (w *world) holdWatch(resource string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held[resource] = true
}

// letWatchesGo delivers the events that were kept back. If a controller that goes round in circles
// has caused more than a watch can buffer, the watch breaks: an API server ends such a watch, too.
func (w *world) letWatchesGo() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.held)
	for resource, streams := range w.streams {
		full := func(s *stream) bool { return len(s.held) >= int(watch.DefaultChanSize) }
		if slices.ContainsFunc(streams, full) {
			w.expire(resource)
			continue
		}
		for _, s := range streams {
			s.release()
		}
	}
}

// breakWatch ends the watches of resource with an error that makes the informer list again.
func (w *world) breakWatch(resource string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.expire(resource)
}

// expire is breakWatch for a caller that holds w.mu.
func (w *world) expire(resource string) {
	for _, s := range w.streams[resource] {
		s.out.Error(&apierrors.NewResourceExpired("injected").ErrStatus)
		s.out.Stop()
	}
	delete(w.streams, resource)
	delete(w.lost, resource)
}
