package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// The names in a world. There are few, so that they collide.
var (
	fooNames        = []string{"a", "b"}
	deploymentNames = []string{"x", "y"}
)

// step is one thing that a user, the network or the cluster does. An action ignores the fields that
// it does not need.
type step struct {
	action   string
	foo      string
	name     string // of a Deployment
	replicas int32  // -1 means absent
	times    int
	pause    time.Duration // after it
}

func (s step) String() string {
	return fmt.Sprintf("\n  %s (Foo %s, Deployment %s, replicas %d, times %d), then %v",
		s.action, s.foo, s.name, s.replicas, s.times, s.pause)
}

// actions are the things that can happen, by name.
var actions = map[string]func(*world, step){
	"create a Foo": func(w *world, s step) { w.createFoo(s) },
	"scale a Foo": func(w *world, s step) {
		w.changeFoo(s.foo, func(foo *v1alpha1.Foo) { foo.Spec.Replicas = s.count() })
	},
	"rename a Foo": func(w *world, s step) {
		w.changeFoo(s.foo, func(foo *v1alpha1.Foo) { foo.Spec.DeploymentName = s.name })
	},
	"delete a Foo": func(w *world, s step) {
		w.ignore(w.h.fooTracker.Delete(foosGVR, namespace, s.foo))
	},
	"delete a Foo that is held": func(w *world, s step) {
		w.changeFoo(s.foo, func(foo *v1alpha1.Foo) {
			foo.Finalizers = []string{"example.com/held"}
			foo.DeletionTimestamp = &metav1.Time{Time: time.Now()}
		})
	},
	"let a Deployment go": func(w *world, s step) {
		w.changeDeployment(s.name, func(d *appsv1.Deployment) { d.Finalizers = nil })
	},
	"let a Foo go that is held": func(w *world, s step) {
		w.changeFoo(s.foo, func(foo *v1alpha1.Foo) { foo.Finalizers = nil })
	},
	"create a foreign Deployment": func(w *world, s step) { w.createForeign(s.name, nil) },
	"create a foreign Deployment with the label": func(w *world, s step) {
		w.createForeign(s.name, map[string]string{managedByLabel: controllerName})
	},
	"change a Deployment": func(w *world, s step) {
		w.changeDeployment(s.name, func(d *appsv1.Deployment) {
			d.Spec.Replicas = new(int32(7))
			for i := range d.Spec.Template.Spec.Containers {
				d.Spec.Template.Spec.Containers[i].Image = "evil:1"
			}
		})
	},
	"write other fields of a Deployment": func(w *world, s step) {
		w.changeDeployment(s.name, func(d *appsv1.Deployment) {
			d.Annotations = map[string]string{"example.com/team": "blue"}
		})
	},
	"pause a Deployment": func(w *world, s step) {
		w.changeDeployment(s.name, func(d *appsv1.Deployment) { d.Spec.Paused = true })
	},
	"release a Deployment": func(w *world, s step) {
		w.changeDeployment(s.name, func(d *appsv1.Deployment) { d.OwnerReferences = nil })
	},
	"take the label off a Deployment": func(w *world, s step) {
		w.changeDeployment(s.name, func(d *appsv1.Deployment) { d.Labels = nil })
	},
	"delete a Deployment": func(w *world, s step) {
		w.ignore(w.h.kubeTracker.Delete(deploymentsGVR, namespace, s.name))
	},
	"delete a Deployment in the foreground": func(w *world, s step) {
		w.changeDeployment(s.name, func(d *appsv1.Deployment) {
			d.Finalizers = []string{"foregroundDeletion"}
			d.DeletionTimestamp = &metav1.Time{Time: time.Now()}
		})
	},
	"delete a Deployment that no watch showed": func(w *world, s step) {
		w.loseWatch("deployments")
		w.ignore(w.h.kubeTracker.Delete(deploymentsGVR, namespace, s.name))
		w.createFoo(s)
		time.Sleep(time.Millisecond) // the controller creates the Deployment
		w.ignore(w.h.kubeTracker.Delete(deploymentsGVR, namespace, s.name))
	},
	"collect garbage":                func(w *world, _ step) { w.collectGarbage() },
	"roll out":                       func(w *world, _ step) { w.rollOut() },
	"restart":                        func(w *world, _ step) { w.restart() },
	"fail writes":                    func(w *world, s step) { w.inject(s.times, failed) },
	"let writes conflict":            func(w *world, s step) { w.inject(s.times, conflicted) },
	"lose responses":                 func(w *world, s step) { w.inject(s.times, answerLost) },
	"refuse Deployments":             func(w *world, _ step) { w.setRefused(true) },
	"accept Deployments":             func(w *world, _ step) { w.setRefused(false) },
	"delete the namespace":           func(w *world, _ step) { w.setGoing(true) },
	"hold the watch of Foos":         func(w *world, _ step) { w.holdWatch("foos") },
	"hold the watch of Deployments":  func(w *world, _ step) { w.holdWatch("deployments") },
	"let the watches go":             func(w *world, _ step) { w.letWatchesGo() },
	"lose the watch of Foos":         func(w *world, _ step) { w.loseWatch("foos") },
	"lose the watch of Deployments":  func(w *world, _ step) { w.loseWatch("deployments") },
	"break the watch of Foos":        func(w *world, _ step) { w.breakWatch("foos") },
	"break the watch of Deployments": func(w *world, _ step) { w.breakWatch("deployments") },
}

// createFoo creates the Foo of s, with a unique UID.
func (w *world) createFoo(s step) {
	if w.isGoing() {
		return
	}
	w.fooCount++
	foo := newFoo(s.foo, s.name, s.count())
	foo.UID += "-" + types.UID(strconv.Itoa(w.fooCount))
	w.ignore(w.h.fooTracker.Create(foosGVR, foo, namespace))
}

// createForeign creates a Deployment that belongs to nobody.
func (w *world) createForeign(name string, labels map[string]string) {
	if w.isGoing() {
		return
	}
	foreign := foreignDeployment(labels)
	foreign.Name = name
	w.ignore(w.h.kubeTracker.Create(deploymentsGVR, foreign, namespace))
}

// count returns the replicas as a Foo has them: nil if they are absent.
func (s step) count() *int32 {
	if s.replicas < 0 {
		return nil
	}
	return &s.replicas
}

// settle ends all disturbances and gives the controller time to finish its work.
func (w *world) settle() {
	w.mu.Lock()
	w.faults, w.refused, w.disturb, w.onEvent = nil, false, nil, nil
	maps.Copy(w.lost, w.dropped)
	lost := slices.Sorted(maps.Keys(w.lost))
	w.mu.Unlock()
	if w.down() {
		w.start()
	}
	for _, resource := range lost { // only these: to list the others would hide missed events
		w.breakWatch(resource)
	}
	w.letWatchesGo()
	w.finishDeletions()
	for range 6 { // more rounds than the longest chain needs: move, take over, roll out
		w.collectGarbage()
		w.rollOut()
		time.Sleep(time.Minute)
	}
}

// finishDeletions deletes what is being deleted: Deployments, and all objects of the namespace.
func (w *world) finishDeletions() {
	going := w.isGoing()
	for _, deployment := range w.deployments() {
		if deployment.DeletionTimestamp != nil {
			w.changeDeployment(deployment.Name, func(d *appsv1.Deployment) { d.Finalizers = nil })
		} else if going {
			w.ignore(w.h.kubeTracker.Delete(deploymentsGVR, namespace, deployment.Name))
		}
	}
	for _, foo := range w.foos() {
		if going && foo.DeletionTimestamp != nil {
			w.changeFoo(foo.Name, func(foo *v1alpha1.Foo) { foo.Finalizers = nil })
		} else if going {
			w.ignore(w.h.fooTracker.Delete(foosGVR, namespace, foo.Name))
		}
	}
	w.setGoing(false)
}

func (w *world) setRefused(refused bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refused = refused
}

func (w *world) setGoing(going bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.going = going
}

func (w *world) isGoing() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.going
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
		replicas := *cmp.Or(deployment.Spec.Replicas, new(int32))
		status := appsv1.DeploymentStatus{
			Replicas: replicas, UpdatedReplicas: replicas, AvailableReplicas: replicas,
		}
		// If nothing changes, there must be no event: it would hide that the controller missed one.
		if metav1.GetControllerOf(&deployment) != nil &&
			!equality.Semantic.DeepEqual(deployment.Status, status) {
			w.changeDeployment(deployment.Name, func(d *appsv1.Deployment) { d.Status = status })
		}
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
