//go:build histories

package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// step is one thing that a user, the network or the cluster does. Its fields are random; an action
// ignores the fields that it does not need.
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

// steps generates random steps.
var steps = rapid.Custom(func(t *rapid.T) step {
	return step{
		action:   rapid.SampledFrom(slices.Sorted(maps.Keys(actions))).Draw(t, "action"),
		foo:      rapid.SampledFrom(fooNames).Draw(t, "foo"),
		name:     rapid.SampledFrom(deploymentNames).Draw(t, "name"),
		replicas: rapid.Int32Range(-1, 3).Draw(t, "replicas"),
		times:    rapid.IntRange(1, 5).Draw(t, "times"),
		pause: rapid.SampledFrom([]time.Duration{
			0, time.Microsecond, time.Millisecond, 50 * time.Millisecond, 2 * time.Second, time.Minute,
		}).Draw(t, "pause"),
	}
})

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
	"create a foreign Deployment": func(w *world, s step) {
		foreign := foreignDeployment(nil)
		foreign.Name = s.name
		w.ignore(w.h.kubeTracker.Create(deploymentsGVR, foreign, namespace))
	},
	"change a Deployment": func(w *world, s step) {
		w.changeDeployment(s.name, func(d *appsv1.Deployment) {
			d.Spec.Replicas = new(int32(7))
			for i := range d.Spec.Template.Spec.Containers {
				d.Spec.Template.Spec.Containers[i].Image = "evil:1"
			}
		})
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
	"delete a Deployment that no watch showed": func(w *world, s step) {
		w.loseWatch("deployments")
		w.ignore(w.h.kubeTracker.Delete(deploymentsGVR, namespace, s.name))
		w.createFoo(s)
		time.Sleep(time.Millisecond) // the controller creates the Deployment
		w.ignore(w.h.kubeTracker.Delete(deploymentsGVR, namespace, s.name))
	},
	"collect garbage":                func(w *world, _ step) { w.collectGarbage() },
	"roll out":                       func(w *world, _ step) { w.rollOut() },
	"restart":                        func(w *world, _ step) { w.h.stop(); w.h.start() },
	"fail writes":                    func(w *world, s step) { w.inject(s.times, failed) },
	"let writes conflict":            func(w *world, s step) { w.inject(s.times, conflicted) },
	"lose responses":                 func(w *world, s step) { w.inject(s.times, answerLost) },
	"lose the watch of Foos":         func(w *world, _ step) { w.loseWatch("foos") },
	"lose the watch of Deployments":  func(w *world, _ step) { w.loseWatch("deployments") },
	"break the watch of Foos":        func(w *world, _ step) { w.breakWatch("foos") },
	"break the watch of Deployments": func(w *world, _ step) { w.breakWatch("deployments") },
}

// createFoo creates the Foo of s, with a unique UID.
func (w *world) createFoo(s step) {
	w.fooCount++
	foo := newFoo(s.foo, s.name, s.count())
	foo.UID += "-" + types.UID(strconv.Itoa(w.fooCount))
	w.ignore(w.h.fooTracker.Create(foosGVR, foo, namespace))
}

// count returns the replicas as a Foo has them: nil if they are absent.
func (s step) count() *int32 {
	if s.replicas < 0 {
		return nil
	}
	return &s.replicas
}

// TestRandomHistories runs random steps and lets the world settle. Then every Foo must have exactly
// its Deployment, every status must be correct, and nothing more may be written.
func TestRandomHistories(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		history := rapid.SliceOfN(steps, 1, 25).Draw(rt, "history")
		var problems []string
		bubble(t, func(_ *testing.T, h *harness) {
			w := newWorld(h)
			h.start()
			for _, step := range history {
				actions[step.action](w, step)
				time.Sleep(step.pause)
			}
			w.settle()
			problems = w.problems()
		})
		if len(problems) > 0 {
			rt.Fatalf("after %v\n%s", history, strings.Join(problems, "\n"))
		}
	})
}

// checkHeld reports what is wrong with the status of a Foo that a finalizer holds. deployment may
// be nil.
func (w *world) checkHeld(
	foo *v1alpha1.Foo, deployment *appsv1.Deployment, report func(string, ...any),
) {
	replicas, want := int32(0), "False FooTerminating"
	// Without the label, the controller does not see the Deployment.
	if deployment != nil && metav1.IsControlledBy(deployment, foo) && deployment.Labels != nil {
		replicas = deployment.Status.Replicas
		image := deployment.Spec.Template.Spec.Containers[0].Image
		asked := int32(1)
		if foo.Spec.Replicas != nil {
			asked = *foo.Spec.Replicas
		}
		if *deployment.Spec.Replicas == asked && image != "evil:1" {
			want = "True Available"
		}
	}
	if got := w.h.ready(foo.Name); got != want {
		report("Foo %s, held by a finalizer: Ready: got %q, want %q", foo.Name, got, want)
	}
	if foo.Status.Replicas != replicas || foo.Status.ObservedGeneration != foo.Generation {
		report("Foo %s, held by a finalizer: got %d replicas and observedGeneration %d, want %d and %d",
			foo.Name, foo.Status.Replicas, foo.Status.ObservedGeneration, replicas, foo.Generation)
	}
}

// problems returns what is wrong after the world has settled.
func (w *world) problems() (problems []string) {
	report := func(format string, args ...any) {
		problems = append(problems, fmt.Sprintf(format, args...))
	}
	for _, foo := range w.foos() {
		deployment := w.deployment(foo.Spec.DeploymentName)
		if foo.DeletionTimestamp != nil {
			w.checkHeld(foo, deployment, report)
			continue
		}
		if deployment == nil {
			report("Foo %s has no Deployment", foo.Name)
			continue
		}
		want := "False DeploymentNameTaken"
		if metav1.IsControlledBy(deployment, foo) {
			want = "True Available"
			if foo.Status.Replicas != deployment.Status.Replicas {
				report("Foo %s: replicas in the status: got %d, want %d", foo.Name,
					foo.Status.Replicas, deployment.Status.Replicas)
			}
			want := int32(1)
			if foo.Spec.Replicas != nil {
				want = *foo.Spec.Replicas
			}
			if got := *deployment.Spec.Replicas; got != want {
				report("Foo %s: replicas of its Deployment: got %d, want %d", foo.Name, got, want)
			}
			if got := deployment.Spec.Template.Spec.Containers[0].Image; got == "evil:1" {
				report("Foo %s: its Deployment still has the image %s", foo.Name, got)
			}
		}
		if got := w.h.ready(foo.Name); got != want {
			report("Foo %s: Ready: got %q, want %q", foo.Name, got, want)
		}
		if foo.Status.ObservedGeneration != foo.Generation {
			report("Foo %s: observedGeneration: got %d, want %d", foo.Name,
				foo.Status.ObservedGeneration, foo.Generation)
		}
	}
	for _, deployment := range w.deployments() {
		if version, ok := w.foreign[deployment.Name]; ok && version != deployment.ResourceVersion {
			report("the foreign Deployment %s was changed", deployment.Name)
		}
		owner := w.ownerOf(&deployment)
		if owner == nil || owner.DeletionTimestamp != nil ||
			owner.Spec.DeploymentName == deployment.Name {
			continue
		}
		// A Deployment of a former name stays while the Foo cannot have the new name. Without the
		// label, which nothing restores on it, it stays until the Foo is deleted.
		named := w.deployment(owner.Spec.DeploymentName)
		if metav1.IsControlledBy(named, owner) && deployment.Labels != nil {
			report("Deployment %s is left over from Foo %s", deployment.Name, owner.Name)
		}
	}
	before := w.versions()
	time.Sleep(time.Hour)
	if after := w.versions(); after != before {
		report("writes in an idle hour: got %d, want 0", after-before)
	}
	return problems
}
