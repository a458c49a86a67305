package explore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"example.com/sample-controller/explore/apiserver"
)

// Namespace is where the objects are whose namespace is not named.
const Namespace = "explored"

// errDead is what a process gets that has died. Nothing that it does has an effect any more.
var errDead = errors.New("this process has died")

// World is everything around the controller in one case: the API server, users, other controllers,
// a bad network, and what starts the controller again when it has ended.
type World struct {
	Outside any // what Controller.Outside has made

	controller *Controller
	server     *apiserver.Server
	users      dynamic.Interface
	latency    time.Duration            // of each write of the controller; users wait longer between two steps
	hurry      chan struct{}            // the next step does not wait for its time
	serving    sync.Mutex               // a write of the controller and what wrote says of it are one
	wrote      func(*apiserver.Request) // is called after each write of the controller that has succeeded
	marking    sync.Mutex               // guards marks and logs

	mu       sync.Mutex
	hooks    []hook                   // the first one that matches is called
	lines    map[string]*line         // by resource
	process  *process                 // the newest
	down     bool                     // it has ended, and nobody starts another one
	waking   map[int]bool             // which actors will act
	insist   func(*apiserver.Request) // what another writer does after a write, unless it is nil
	slowed   bool                     // each request takes a second, because there is no end to them
	mistakes []string                 // of the description
	record
}

// record is what has happened in a case.
type record struct {
	requests, events []Request
	changes          []change
	ends             []string // why processes have ended by themselves
	restless         []string // requests that were made without waiting
	inVain           []string // what users could not do
	marks            []mark
	logs             []string // the last lines
}

// recorded returns what has happened so far.
func (w *World) recorded() record {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.marking.Lock()
	defer w.marking.Unlock()
	r := w.record
	r.requests = slices.Clone(r.requests) // because their answers are still to come
	return r
}

// change is what the API server has stored, but not of Events and Leases.
type change struct {
	apiserver.Write
	request *apiserver.Request
}

// byController reports whether the controller made the change.
func (c change) byController() bool {
	_, is := c.request.Interceptor().(*process)
	return is
}

// writer says who made the change.
func (c change) writer() string {
	if c.byController() {
		return describe(c.request).about()
	}
	return "somebody else (" + c.request.Options.FieldManager + ")"
}

// process is one process of the controller. The world's mu guards it.
type process struct {
	world  *World
	number int
	dead   bool
	frozen chan struct{}  // closed when it goes on; nil if it is not frozen
	deaf   bool           // it gets no events, but keeps them
	count  map[string]int // of requests and events, by what they are about
	moment time.Time      // of the last request
	atOnce int            // requests in that moment
	cancel func()
	ended  chan struct{} // closed when Run has returned
}

// newWorld returns a world in which no process runs yet. It must be called in a bubble.
func newWorld(c *Controller, crds []*apiserver.CRD) *World {
	server := apiserver.New(crds...)
	w := &World{controller: c, server: server, hurry: make(chan struct{}, 1),
		users:   dynamic.NewForConfigOrDie(server.Config(nil)),
		latency: 100 * time.Microsecond, lines: map[string]*line{}, waking: map[int]bool{}}
	server.OnWrite, server.Admit = w.stored, w.admit
	if c.Outside != nil {
		w.Outside = c.Outside()
	}
	Create("{apiVersion: v1, kind: Namespace, metadata: {name: " + Namespace + "}}").Do(w)
	return w
}

// stored notes what the API server stores. The API server is locked meanwhile.
func (w *World) stored(r *apiserver.Request, write apiserver.Write) {
	if isSideshow(r.Resource.GroupResource().String()) {
		return
	}
	w.mu.Lock()
	if w.insist != nil {
		w.insist(r)
	}
	w.wake()
	w.changes = append(w.changes, change{write, r})
	w.mu.Unlock()
}

// start starts a process of the controller. If it ends by itself, another one is started ten
// seconds later.
func (w *World) start() {
	logging := klog.NewContext(context.Background(), w.logger())
	ctx, cancel := context.WithCancel(context.WithValue(logging, outside{}, w.Outside))
	p := &process{world: w, number: 1, count: map[string]int{}, cancel: cancel, ended: make(chan struct{})}
	w.mu.Lock()
	if w.process != nil {
		p.number += w.process.number
	}
	w.process, w.down = p, false
	w.mu.Unlock()
	go func() {
		defer close(p.ended)
		err := w.controller.Run(ctx, w.server.Config(p))
		w.mu.Lock()
		defer w.mu.Unlock()
		if byItself := ctx.Err() == nil && !p.dead; byItself {
			w.ends = append(w.ends, fmt.Sprint(err))
			w.end(p, 10*time.Second)
		}
		cancel()
	}()
}

// end notes that a process has ended: no request of it has an effect any more, and nobody waits for
// it. Another one starts after some time or, if that is 0, after the next step. w.mu must be held.
func (w *World) end(p *process, next time.Duration) {
	p.dead = true
	go p.cancel()
	if next == 0 {
		w.down = true
		return
	}
	time.AfterFunc(next, func() {
		w.startIf(func() bool { return w.process == p && !w.down }) // and not if a step has, or in the end
	})
}

// startAgain starts a process if there is none, and none will start.
func (w *World) startAgain() { w.startIf(func() bool { return w.down }) }

// startIf starts a process if isToStart, for which it holds w.mu.
func (w *World) startIf(isToStart func() bool) {
	w.mu.Lock()
	start := isToStart()
	w.mu.Unlock()
	if start {
		w.start()
	}
}

func (w *World) restart() {
	w.stop()
	w.start()
}

// stop stops the process, and lets nobody start another one.
func (w *World) stop() {
	w.mu.Lock()
	w.down = true
	p := w.process
	w.mu.Unlock()
	p.cancel()
	select {
	case <-p.ended:
	case <-time.After(time.Hour):
		panic("Run has not returned an hour after its context was done")
	}
}

func (p *process) wait() {
	p.world.mu.Lock()
	frozen := p.frozen
	p.world.mu.Unlock()
	if frozen != nil {
		<-frozen
	}
}

// settle ends all disturbances and gives the controller time to finish its work.
func (w *World) settle() {
	w.mu.Lock()
	w.hooks, w.insist = nil, nil
	for _, l := range w.lines {
		l.refused = false
		if l.lost || l.dropped { // to list the others would hide missed events
			w.expire(l)
		}
	}
	w.letWatchesGo()
	w.mu.Unlock()
	w.startAgain()
	if heal := w.controller.Heal; heal != nil {
		heal(w)
	}
	const rounds = 6 // more than the longest chain needs: move, take over, roll out
	for range rounds {
		for _, step := range w.controller.cluster() {
			step.Do(w)
		}
		pause := w.controller.Settle / rounds
		w.mu.Lock()
		if w.slowed { // so it never rests, and each request of a longer time would have to be made
			pause = min(pause, time.Minute)
		}
		w.mu.Unlock()
		time.Sleep(pause)
	}
}

// State returns what the API server has.
func (w *World) State() State { return State{w.Outside, w.server} }

// Config is for clients of users. See [Do].
func (w *World) Config() *rest.Config { return w.server.Config(nil) }

// tell notes why a step cannot be. That is a mistake of the description, unless the object exists
// already, does not exist, was changed by somebody else first, or its namespace goes. Then the end
// may differ from that of the undisturbed run.
func (w *World) tell(what string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err == nil:
	case apierrors.IsNotFound(err), apierrors.IsAlreadyExists(err), apierrors.IsConflict(err),
		apierrors.HasStatusCause(err, "NamespaceTerminating"):
		w.inVain = append(w.inVain, what)
	default:
		w.mistakes = append(w.mistakes, fmt.Sprintf("%s: %v", what, err))
	}
}
