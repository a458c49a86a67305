package explore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
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

	hurry   chan struct{} // the next step does not wait for its time
	serving sync.Mutex    // a write and what Always says of it are one

	mu         sync.Mutex
	faults     []fault              // to come
	troubles   []Answer             // to the next writes
	refused    map[string]bool      // resources that admission refuses
	streams    map[string][]*stream // by resource
	lost, held map[string]bool      // resources whose events are dropped, or are kept back
	dropped    map[string]bool      // resources of which single events were dropped
	past       map[string]int64     // by resource, the revision that the next list shows
	processes  int                  // so far
	process    *process             // the newest
	killed     bool                 // it was killed, and nobody starts another one
	own        map[string]bool      // UIDs of what the controller has created

	record

	filming sync.Mutex
	seen    map[string]bool // paths of what is filmed
}

// record is what has happened in a case.
type record struct {
	requests, events []Request
	steps            []string
	hits             []hit                                  // the faults that came about
	written          map[schema.GroupVersionResource]counts // by the controller
	ends             []string                               // why processes have ended by themselves
	restless         []string                               // requests that were made without waiting
	unasked          []unasked
	inVain           []string // what users could not do
	mistakes         []string // of the description
	film             []Shot   // if there is one
}

// counts says how often objects of a resource were created and deleted.
type counts struct{ created, deleted int }

// process is one process of the controller. The world's mu guards it.
type process struct {
	world  *World
	number int
	dead   bool
	count  map[string]int // of requests and events, by what they are about
	moment time.Time      // of the last request
	atOnce int            // requests in that moment
	stop   func()         // and wait for its end
}

// newWorld returns a world without a controller. It must be called in a bubble.
func (x *explorer) newWorld() (*World, error) {
	server, err := apiserver.New(x.crds...)
	if err != nil {
		return nil, err
	}
	users, err := dynamic.NewForConfig(server.Config(nil))
	if err != nil {
		return nil, err
	}
	namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1",
		"kind": "Namespace", "metadata": map[string]any{"name": Namespace}}}
	w := &World{
		controller: x.controller, server: server, users: users,
		hurry: make(chan struct{}, 1), refused: map[string]bool{}, streams: map[string][]*stream{},
		lost: map[string]bool{}, held: map[string]bool{}, dropped: map[string]bool{},
		past: map[string]int64{}, own: map[string]bool{},
		record: record{written: map[schema.GroupVersionResource]counts{}}, seen: map[string]bool{},
	}
	if x.controller.Outside != nil {
		w.Outside = x.controller.Outside()
	}
	return w, w.create(namespace)
}

// start starts a process of the controller. If it ends by itself, another one is started ten
// seconds later.
func (w *World) start() {
	logging := klog.NewContext(context.Background(), w.logger())
	ctx, cancel := context.WithCancel(context.WithValue(logging, outside{}, w.Outside))
	stopped := make(chan struct{})
	p := &process{world: w, count: map[string]int{}, stop: func() { cancel(); <-stopped }}
	w.mu.Lock()
	w.processes++
	p.number, w.process, w.killed = w.processes, p, false
	w.mu.Unlock()
	w.shoot(Shot{What: "started"})
	go func() {
		defer close(stopped)
		err := w.controller.Run(ctx, w.server.Config(p))
		byItself := ctx.Err() == nil
		cancel()
		if byItself {
			w.ended(p, err)
		}
	}()
}

// ended notes that a process has ended by itself, and lets another one start.
func (w *World) ended(p *process, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p.dead = true
	w.ends = append(w.ends, fmt.Sprint(err))
	w.shoot(Shot{What: "ended", Text: fmt.Sprintf("It ended by itself: %v", err)})
	time.AfterFunc(10*time.Second, func() {
		if !w.down() { // the case has not ended
			w.start()
		}
	})
}

// kill makes a process die: no request of it has an effect any more, and nobody waits for it. If
// forLonger is false, the caller starts another one.
func (w *World) kill(p *process, forLonger bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p.dead, w.killed = true, forLonger
	w.shoot(Shot{What: "ended", Text: "It died."})
	go p.stop()
}

// down reports whether the process was killed for longer.
func (w *World) down() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.killed
}

// stop stops the process, and lets nobody start another one.
func (w *World) stop() {
	w.mu.Lock()
	w.killed = true
	stop := w.process.stop
	w.mu.Unlock()
	stop()
	w.shoot(Shot{What: "ended", Text: "It was stopped."})
}

// restart stops the process and starts another one.
func (w *World) restart() {
	w.stop()
	w.start()
}

// take takes a step.
func (w *World) take(s Step) {
	w.mu.Lock()
	w.steps = append(w.steps, s.Name)
	w.mu.Unlock()
	w.shoot(Shot{What: "step", Text: s.Name})
	s.Do(w)
}

// play takes a step, and waits. A process that was killed for longer starts again after the step.
func (w *World) play(s Step) {
	time.Sleep(time.Millisecond) // nobody does two things in the same instant
	w.take(s)
	if w.down() {
		w.start()
	}
	select {
	case <-time.After(w.controller.Delay):
	case <-w.hurry:
	}
}

// hurryUp lets the users take their next step now.
func (w *World) hurryUp() {
	select {
	case w.hurry <- struct{}{}:
	default:
	}
}

// settle ends all disturbances and gives the controller time to finish its work.
func (w *World) settle() {
	w.mu.Lock()
	w.faults, w.troubles = nil, nil
	clear(w.refused)
	maps.Copy(w.lost, w.dropped)
	lost := slices.Sorted(maps.Keys(w.lost))
	w.mu.Unlock()
	if w.down() {
		w.start()
	}
	w.mu.Lock()
	for _, resource := range lost { // only these: to list the others would hide missed events
		w.expire(resource)
	}
	w.letWatchesGo()
	w.mu.Unlock()
	if heal := w.controller.Heal; heal != nil {
		heal(w)
	}
	const rounds = 6 // more than the longest chain needs: move, take over, roll out
	for range rounds {
		w.finishNamespaces()
		w.collectGarbage()
		w.rollOut()
		time.Sleep(w.controller.Settle / rounds)
	}
}

// State returns what the API server has.
func (w *World) State() State { return State{w.Outside, w.server} }

// mistake notes that the description asks for something that cannot be.
func (w *World) mistake(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mistakes = append(w.mistakes, fmt.Sprintf(format, args...))
}

// ignore accepts that a request of a user or of the cluster is refused because the object exists
// already, does not exist, was changed by somebody else first, or because its namespace goes. Then
// the end may differ from that of the undisturbed run.
func (w *World) ignore(what string, err error) {
	switch {
	case err == nil:
		return
	case apierrors.IsNotFound(err), apierrors.IsAlreadyExists(err), apierrors.IsConflict(err),
		apierrors.HasStatusCause(err, "NamespaceTerminating"):
	default:
		w.mistake("%s: %v", what, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inVain = append(w.inVain, what)
}
