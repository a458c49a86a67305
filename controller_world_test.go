package main

import (
	"context"
	"errors"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"example.com/sample-controller/internal/fakes"
	"example.com/sample-controller/internal/informers"
)

var (
	deploymentsGVR = appsv1.SchemeGroupVersion.WithResource("deployments")
	foosGVR        = fooKind.GroupVersion().WithResource("foos")
)

// errDead is what a process gets that has died. Nothing that it does has an effect any more.
var errDead = errors.New("this process has died")

// world is everything around the controller: users, other controllers, a bad network, and what
// starts the controller again when it has ended.
type world struct {
	h        *harness
	fooCount int
	foreign  map[string]string // resourceVersions, by name, of the Deployments without an owner

	// disturb, if it is set, decides what becomes of a request: do lets it happen. onEvent does the
	// same for the event of a watch.
	disturb  func(p *instance, r request, do func() error) error
	onEvent  func(p *instance, e request) treatment
	lateness time.Duration
	hurry    chan struct{} // the next step does not wait for its time

	serving sync.Mutex // an API server does one thing after the other

	mu         sync.Mutex
	faults     []fault              // of the next writes
	refused    bool                 // admission refuses all Deployments
	going      bool                 // the namespace is being deleted
	streams    map[string][]*stream // by resource
	lost, held map[string]bool      // resources whose events are dropped, or are kept back
	dropped    map[string]bool      // resources of which single events were dropped
	processes  int
	instance   *instance                // the newest
	log        map[string][]watch.Event // by resource, all that has happened
	past       map[string]int           // by resource, how much of that the next list shows
	killed     bool                     // it was killed, and nobody starts another one
	requests   []request
	events     []request
	ends       []string // why processes have ended by themselves
	created    int      // Deployments
	deleted    int
	unasked    []string // what the controller wrote although the newest state did not ask for it
}

// instance is one process of the controller, with clients of its own. The world's mu guards it.
type instance struct {
	number int
	dead   bool
	count  map[string]int    // of requests and events, by what they are about
	listed map[string]string // by resource, what the process has listed
	stop   func()
}

func newWorld(h *harness) *world {
	w := &world{
		h: h, foreign: map[string]string{}, streams: map[string][]*stream{},
		lost: map[string]bool{}, held: map[string]bool{}, dropped: map[string]bool{},
		log: map[string][]watch.Event{}, hurry: make(chan struct{}, 1),
	}
	w.record(foosGVR, h.fooTracker)
	w.record(deploymentsGVR, h.kubeTracker)
	return w
}

// record keeps all events of a resource.
func (w *world) record(gvr schema.GroupVersionResource, tracker *fakes.Tracker) {
	events, err := tracker.Watch(gvr, namespace)
	if err != nil {
		w.h.t.Error(err)
		return
	}
	w.h.t.Cleanup(events.Stop)
	go func() {
		for event := range events.ResultChan() {
			w.mu.Lock()
			w.log[gvr.Resource] = append(w.log[gvr.Resource], event)
			w.mu.Unlock()
		}
	}()
}

// start starts a process of the controller, as main does. If it ends by itself, another one is
// started ten seconds later.
func (w *world) start() {
	h := w.h
	f := h.fakes.Again()
	p := &instance{count: map[string]int{}, listed: map[string]string{}}
	w.interfere(p, &f.Kube.Fake)
	w.interfere(p, &f.Foo.Fake)

	quiet := klog.NewContext(context.Background(), klog.Logger{})
	background, stopInformers := context.WithCancel(quiet)
	ctx, stop := context.WithCancel(quiet)
	workCtx, fail := context.WithCancelCause(ctx)
	recorder, err := newRecorder(ctx, f.Kube)
	if err != nil {
		h.t.Error(err)
	}
	kubeFactory, fooFactory := newInformerFactories(
		&clients{kube: f.Kube, foo: f.Foo}, &h.options, nil)
	foos := fooFactory.Samplecontroller().V1alpha1().Foos()
	deployments := kubeFactory.Apps().V1().Deployments()
	controller, err := NewController(f.Kube, f.Foo, foos, deployments, recorder)
	if err != nil {
		h.t.Error(err)
	}
	group := &informers.Group{
		Factories:   []informers.Factory{fooFactory, kubeFactory},
		Informers:   []cache.SharedIndexInformer{foos.Informer(), deployments.Informer()},
		SyncTimeout: 2 * time.Minute,
	}
	stopped := make(chan struct{})
	p.stop = func() { stop(); <-stopped }
	w.mu.Lock()
	w.processes++
	p.number, w.instance, w.killed = w.processes, p, false
	w.mu.Unlock()
	go func() {
		defer close(stopped)
		err := group.Start(workCtx, background, fail)
		if err != nil {
			fail(err)
		}
		controller.Run(workCtx, 2)
		recorder.Flush(flushTimeout)
		stopInformers()
		if ctx.Err() == nil {
			w.ended(p, context.Cause(workCtx))
		}
	}()
	h.t.Cleanup(func() {
		p.stop()
		stopInformers()
		kubeFactory.Shutdown()
		fooFactory.Shutdown()
	})
}

// ended notes that a process has ended by itself, and lets another one start.
func (w *world) ended(p *instance, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p.dead = true
	w.ends = append(w.ends, err.Error())
	time.AfterFunc(10*time.Second, w.start)
}

// kill makes a process die: no request of it has an effect any more, and nobody waits for it. If
// forLonger is false, the caller starts another one.
func (w *world) kill(p *instance, forLonger bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p.dead, w.killed = true, forLonger
	go p.stop()
}

// down reports whether the process was killed for longer.
func (w *world) down() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.killed
}

// restart stops the process and starts another one.
func (w *world) restart() {
	w.mu.Lock()
	stop := w.instance.stop
	w.mu.Unlock()
	stop()
	w.start()
}
