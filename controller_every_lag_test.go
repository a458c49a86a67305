package main

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// lag is a restart after which the API server shows an older state.
type lag struct {
	step        int            // after which the process is killed
	at          map[string]int // how many events of each resource the API server has seen
	untilTheEnd bool           // and not only until the next step has happened
}

// TestEveryLag restarts the controller after each step of each scenario, with an API server that
// lags: what it lists is an older state of the Foos, of the Deployments, or of both. It catches up
// one step later, or in the end. Without -every, it takes only the latter, and only the scenarios
// with a new name: in the others, there is nothing to delete.
func TestEveryLag(t *testing.T) {
	skipIfShort(t)
	var c cases
	for _, s := range scenarios {
		renames := func(s step) bool { return s.action == rename.action }
		if !*every && !slices.ContainsFunc(s.steps, renames) {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			s.calm(t)
			c.add("scenarios", 1)
			steps := s.untilRolledOut()
			for i := range steps {
				foos, deployments := s.eventsUntil(t, steps[:i+1])
				for behind := 1; behind <= max(foos, deployments); behind++ {
					for name, at := range map[string]map[string]int{
						"foos":        {"foos": foos - behind},
						"deployments": {"deployments": deployments - behind},
						"both": {"foos": max(0, foos-behind),
							"deployments": max(0, deployments-behind)},
					} {
						if at[name] < 0 {
							continue
						}
						name := fmt.Sprintf("step-%d/%s-%d-events-behind", i+1, name, behind)
						if *every {
							s.lag(t, &c, steps, name+"-for-a-step", lag{step: i, at: at, untilTheEnd: false})
						}
						s.lag(t, &c, steps, name, lag{step: i, at: at, untilTheEnd: true})
					}
				}
			}
		})
	}
	c.report(t)
}

// eventsUntil returns how many events of Foos and of Deployments these steps lead to.
func (s scenario) eventsUntil(t *testing.T, steps []step) (foos, deployments int) {
	t.Helper()
	bubble(t, func(_ *testing.T, h *harness) {
		w := newWorld(h)
		w.start()
		w.play(steps)
		w.mu.Lock()
		foos, deployments = len(w.log["foos"]), len(w.log["deployments"])
		w.mu.Unlock()
	})
	return foos, deployments
}

// lag runs the scenario with such a restart.
func (s scenario) lag(t *testing.T, c *cases, steps []step, name string, l lag) {
	t.Helper()
	c.run(t, name, true, func(t *testing.T) {
		bubble(t, func(t *testing.T, h *harness) {
			w := newWorld(h)
			w.start()
			w.play(steps[:l.step+1])
			w.mu.Lock()
			old := w.instance
			w.past = l.at
			w.mu.Unlock()
			w.kill(old, false)
			w.start()
			time.Sleep(pause)
			for i, s := range steps[l.step+1:] {
				w.play([]step{s})
				if i == 0 && !l.untilTheEnd {
					w.letWatchesGo()
					time.Sleep(pause)
				}
			}
			w.settle()
			problems := w.problems(idle())
			w.mu.Lock()
			defer w.mu.Unlock()
			expectNone(t, fmt.Sprintf("with a list after the events %v", l.at),
				append(problems, c.split(w.unasked)...))
		})
	})
}

// pastOf returns what has happened in the state that a list shows if the API server lags.
func (w *world) pastOf(action clienttesting.Action) (events []watch.Event, behind bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	resource := action.GetResource().Resource
	n, behind := w.past[resource]
	return w.log[resource][:n], behind && action.GetVerb() == "list"
}

// watchFrom returns the events of a watch. If the API server lags, those that its list did not show
// come first, and all are held.
func (w *world) watchFrom(
	p *instance, source clienttesting.WatchReactor, action clienttesting.WatchActionImpl,
) (watch.Interface, error) {
	w.mu.Lock()
	resource := action.GetResource().Resource
	var missed []watch.Event
	if n, behind := w.past[resource]; behind {
		delete(w.past, resource)
		missed, w.held[resource] = slices.Clone(w.log[resource][n:]), true
		action.ListOptions.ResourceVersion = strconv.Itoa(w.version(resource))
	}
	w.mu.Unlock()
	_, events, err := source.React(action)
	if err != nil {
		return nil, err
	}
	return w.forward(p, resource, events, missed), nil
}

// selected returns an event as a watch with the controller's selector shows it, if it does.
func selected(event watch.Event) (watch.Event, bool) {
	deployment, ok := event.Object.(*appsv1.Deployment)
	if !ok || deployment.Labels[managedByLabel] == controllerName {
		return event, true
	}
	shown := event.Type == watch.Modified
	event.Type = watch.Deleted
	return event, shown
}

// listOf returns a list of the state after these events.
func listOf(resource string, events []watch.Event) runtime.Object {
	version := 1
	objects := map[string]runtime.Object{}
	for _, event := range events {
		object := event.Object.(metav1.Object)
		if n, err := strconv.Atoi(object.GetResourceVersion()); err == nil {
			version = max(version, n)
		}
		event, shown := selected(event)
		switch {
		case event.Type == watch.Deleted:
			delete(objects, object.GetName())
		case shown:
			objects[object.GetName()] = event.Object.DeepCopyObject()
		}
	}
	meta := metav1.ListMeta{ResourceVersion: strconv.Itoa(version)}
	if resource == "foos" {
		list := &v1alpha1.FooList{ListMeta: meta}
		for _, object := range objects {
			list.Items = append(list.Items, *object.(*v1alpha1.Foo))
		}
		return list
	}
	list := &appsv1.DeploymentList{ListMeta: meta}
	for _, object := range objects {
		list.Items = append(list.Items, *object.(*appsv1.Deployment))
	}
	return list
}
