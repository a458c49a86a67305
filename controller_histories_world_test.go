//go:build histories

package main

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	"example.com/sample-controller/internal/fakes"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

var (
	deploymentsGVR = appsv1.SchemeGroupVersion.WithResource("deployments")
	foosGVR        = fooKind.GroupVersion().WithResource("foos")
)

// The names in a world. There are few, so that they collide.
var (
	fooNames        = []string{"a", "b"}
	deploymentNames = []string{"x", "y"}
)

// fault is what happens to a write of the controller.
type fault int

const (
	failed     fault = iota // an error, and nothing is written
	conflicted              // as if somebody else had written in between
	answerLost              // an error, although the write has happened
)

// world is everything around the controller: users, other controllers and a bad network.
type world struct {
	h        *harness
	fooCount int
	foreign  map[string]string // resourceVersions, by name, of the Deployments without an owner

	mu      sync.Mutex
	faults  []fault                                 // of the next writes
	watches map[string][]*watch.RaceFreeFakeWatcher // by resource
	lost    map[string]bool                         // resources whose events are dropped
}

func newWorld(h *harness) *world {
	w := &world{
		h: h, foreign: map[string]string{}, lost: map[string]bool{},
		watches: map[string][]*watch.RaceFreeFakeWatcher{},
	}
	w.interfere(&h.kube.Fake, h.kubeTracker)
	w.interfere(&h.foo.Fake, h.fooTracker)
	return w
}

// interfere puts the faults of the world between client and tracker.
func (w *world) interfere(client *clienttesting.Fake, tracker *fakes.Tracker) {
	write := clienttesting.ObjectReaction(tracker)
	client.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		fault, ok := w.nextFault(action)
		if !ok {
			return false, nil, nil
		}
		resource := action.GetResource().GroupResource()
		switch fault {
		case conflicted:
			return true, nil, apierrors.NewConflict(resource, "", errors.New("injected"))
		case answerLost:
			_, _, _ = write(action)
		}
		return true, nil, apierrors.NewTimeoutError("injected", 0)
	})
	source := client.WatchReactionChain[0]
	client.PrependWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		_, events, err := source.React(action)
		if err != nil {
			return true, nil, err
		}
		return true, w.forward(action.GetResource().Resource, events), nil
	})
}

// nextFault removes and returns the next fault if action is a write that it can hit.
func (w *world) nextFault(action clienttesting.Action) (fault, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch action.GetVerb() {
	case "get", "list", "watch":
		return 0, false
	}
	if action.GetResource().Resource == "events" || len(w.faults) == 0 {
		return 0, false
	}
	next := w.faults[0]
	w.faults = w.faults[1:]
	return next, true
}

func (w *world) inject(times int, f fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for range times {
		w.faults = append(w.faults, f)
	}
}

// forward returns a watch of the same events, which loseWatch and breakWatch can disturb.
func (w *world) forward(resource string, events watch.Interface) watch.Interface {
	out := watch.NewRaceFreeFake()
	w.mu.Lock()
	w.watches[resource] = append(w.watches[resource], out)
	w.mu.Unlock()
	w.h.t.Cleanup(events.Stop)
	go func() {
		for event := range events.ResultChan() {
			w.mu.Lock()
			if !w.lost[resource] {
				out.Action(event.Type, event.Object)
			}
			w.mu.Unlock()
		}
	}()
	return out
}

// loseWatch drops all events of resource until breakWatch is called.
func (w *world) loseWatch(resource string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lost[resource] = true
}

// breakWatch ends the watches of resource with an error that makes the informer list again.
func (w *world) breakWatch(resource string) {
	w.mu.Lock()
	broken := w.watches[resource]
	delete(w.watches, resource)
	delete(w.lost, resource)
	w.mu.Unlock()
	for _, out := range broken {
		out.Error(&apierrors.NewResourceExpired("injected").ErrStatus)
		out.Stop()
	}
}

// settle ends all disturbances and gives the controller time to finish its work.
func (w *world) settle() {
	w.mu.Lock()
	w.faults = nil
	lost := slices.Collect(maps.Keys(w.lost))
	w.mu.Unlock()
	for _, resource := range lost { // only these: to list the others would hide missed events
		w.breakWatch(resource)
	}
	for range 6 { // more rounds than the longest chain needs: move, take over, roll out
		w.collectGarbage()
		w.rollOut()
		time.Sleep(time.Minute)
	}
}

// ignore accepts that a user's request is refused because the object exists already, does not exist
// or was changed by somebody else first.
func (w *world) ignore(err error) {
	refused := apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err)
	if err != nil && !refused {
		w.h.t.Error(err)
	}
	w.noteForeign()
}

func (w *world) changeFoo(name string, change func(*v1alpha1.Foo)) {
	object, err := w.h.fooTracker.Get(foosGVR, namespace, name)
	if err == nil {
		foo := object.(*v1alpha1.Foo)
		change(foo)
		foo.Generation++
		err = w.h.fooTracker.Update(foosGVR, foo, namespace)
	}
	w.ignore(err)
}

func (w *world) changeDeployment(name string, change func(*appsv1.Deployment)) {
	deployment := w.deployment(name)
	if deployment == nil {
		return
	}
	change(deployment)
	w.ignore(w.h.kubeTracker.Update(deploymentsGVR, deployment, namespace))
}

// noteForeign remembers the Deployments without an owner, as the users left them.
func (w *world) noteForeign() {
	clear(w.foreign)
	for _, deployment := range w.deployments() {
		if metav1.GetControllerOf(&deployment) == nil {
			w.foreign[deployment.Name] = deployment.ResourceVersion
		}
	}
}

// collectGarbage deletes the Deployments whose Foo is gone.
func (w *world) collectGarbage() {
	for _, deployment := range w.deployments() {
		if metav1.GetControllerOf(&deployment) != nil && w.ownerOf(&deployment) == nil {
			w.ignore(w.h.kubeTracker.Delete(deploymentsGVR, namespace, deployment.Name))
		}
	}
}

// rollOut makes the Pods of all owned Deployments available.
func (w *world) rollOut() {
	for _, deployment := range w.deployments() {
		if metav1.GetControllerOf(&deployment) == nil {
			continue
		}
		replicas := *deployment.Spec.Replicas
		w.changeDeployment(deployment.Name, func(d *appsv1.Deployment) {
			d.Status.Replicas, d.Status.UpdatedReplicas = replicas, replicas
			d.Status.AvailableReplicas = replicas
		})
	}
}

// ownerOf returns the existing Foo that controls deployment, or nil.
func (w *world) ownerOf(deployment *appsv1.Deployment) *v1alpha1.Foo {
	for _, foo := range w.foos() {
		if metav1.IsControlledBy(deployment, foo) {
			return foo
		}
	}
	return nil
}

func (w *world) foos() (foos []*v1alpha1.Foo) {
	for _, name := range fooNames {
		if object, err := w.h.fooTracker.Get(foosGVR, namespace, name); err == nil {
			foos = append(foos, object.(*v1alpha1.Foo))
		}
	}
	return foos
}

func (w *world) deployments() (deployments []appsv1.Deployment) {
	for _, name := range deploymentNames {
		if deployment := w.deployment(name); deployment != nil {
			deployments = append(deployments, *deployment)
		}
	}
	return deployments
}

// deployment returns the Deployment of that name, or nil.
func (w *world) deployment(name string) *appsv1.Deployment {
	object, err := w.h.kubeTracker.Get(deploymentsGVR, namespace, name)
	if err != nil {
		return nil
	}
	return object.(*appsv1.Deployment)
}

// versions counts the writes of Foos and Deployments so far.
func (w *world) versions() int {
	return w.h.fooTracker.Version(foosGVR) + w.h.kubeTracker.Version(deploymentsGVR)
}
