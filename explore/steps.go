package explore

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/yaml"
)

// Create returns a step that creates an object, which is YAML: "{apiVersion: v1, kind: ConfigMap,
// metadata: {name: a}}".
func Create(object string) Step {
	var u unstructured.Unstructured
	malformed := yaml.Unmarshal([]byte(object), &u.Object)
	name := fmt.Sprintf("create %s %s", u.GetKind(), u.GetName())
	return Step{name, func(w *World) {
		err := malformed
		if _, _, ok := w.server.LookupKind(u.GroupVersionKind()); err == nil && !ok {
			err = fmt.Errorf("the API server has no kind %v: is its definition in CRDs?",
				u.GroupVersionKind())
		}
		if err == nil {
			_, err = w.client(&u).Create(context.Background(), u.DeepCopy(), metav1.CreateOptions{})
		}
		w.tell(name, err)
	}}
}

// Patch returns a step that changes an object by a JSON merge patch, which is YAML:
// "spec: {replicas: 3}". The object is "foos/a", "foos/a/status", "foos/elsewhere/a" in another
// namespace than the default, or "namespaces/red", which is in none.
func Patch(object, patch string) Step { return patchAs("", "patch", object, patch) }

func patchAs(manager, verb, object, patch string) Step {
	name := fmt.Sprintf("%s %s %s", verb, object, strings.Join(strings.Fields(patch), " "))
	return on(name, object, func(c dynamic.ResourceInterface, name string, sub ...string) error {
		body, err := yaml.YAMLToJSON([]byte(patch))
		if err == nil {
			_, err = c.Patch(context.Background(), name, types.MergePatchType, body,
				metav1.PatchOptions{FieldManager: manager}, sub...)
		}
		return err
	})
}

// Delete returns a step that deletes an object in the background. It is named as for [Patch].
func Delete(object string) Step {
	name := "delete " + object
	return on(name, object, func(c dynamic.ResourceInterface, name string, _ ...string) error {
		return c.Delete(context.Background(), name,
			metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)})
	})
}

// Do returns a step of your own: whatever a client of users can do, which is made with World.Config,
// or something outside. An error ends the test, unless an object exists already, does not exist, was
// changed by somebody else first, or its namespace goes.
func Do(name string, do func(*World) error) Step {
	return Step{name, func(w *World) { w.tell(name, do(w)) }}
}

// on returns a step in which a user does something to an object.
func on(
	step, object string, do func(c dynamic.ResourceInterface, name string, sub ...string) error,
) Step {
	return Step{step, func(w *World) {
		resource, name, _ := strings.Cut(object, "/")
		var sub []string
		if i := strings.LastIndex(name, "/"); i > 0 && name[i:] == "/status" {
			name, sub = name[:i], []string{name[i+1:]}
		}
		gvr, namespaced, ok := w.server.Lookup(resource)
		if !ok || name == "" {
			w.tell(step, fmt.Errorf("%q names no object, or no resource in CRDs", object))
			return
		}
		namespace, name := split(name, namespaced)
		w.tell(step, do(w.users.Resource(gvr).Namespace(namespace), name, sub...))
	}}
}

// split returns the namespace and the name of "a" or "elsewhere/a".
func split(text string, namespaced bool) (namespace, name string) {
	namespace, name, _ = cache.SplitMetaNamespaceKey(text)
	if namespaced {
		namespace = cmp.Or(namespace, Namespace)
	}
	return namespace, name
}

// client returns a client for an object and others of its kind, in its namespace.
func (w *World) client(o *unstructured.Unstructured) dynamic.ResourceInterface {
	gvr, namespaced, _ := w.server.LookupKind(o.GroupVersionKind())
	namespace := o.GetNamespace()
	if namespaced {
		namespace = cmp.Or(namespace, Namespace)
	}
	return w.users.Resource(gvr).Namespace(namespace)
}

// Steps that the cluster takes.
var (
	// CollectGarbage is a step in which the garbage collector and the controller of namespaces work.
	CollectGarbage = Step{"collect garbage", func(w *World) {
		w.finishNamespaces()
		w.collectGarbage()
	}}
	// RollOut is a step in which the Pods of all Deployments and StatefulSets become available.
	RollOut = Step{"roll out", (*World).rollOut}
	// Restart is a step in which the controller is stopped and started.
	Restart = Step{"restart", (*World).restart}
	// Pause is a step that takes a moment, in which the controller does all that it can do at once.
	Pause = Step{"pause", func(*World) { time.Sleep(time.Millisecond) }}
)

// Refuse returns a step after which admission refuses to let the controller create or change
// objects of a resource. In this and the next steps, it is named as "foos" or "deployments.apps".
func Refuse(resource string) Step {
	return onLine("refuse ", resource, func(_ *World, l *line) { l.refused = true })
}

// Accept returns a step that undoes Refuse.
func Accept(resource string) Step {
	return onLine("accept ", resource, func(_ *World, l *line) { l.refused = false })
}

// HoldWatch returns a step after which the events of a resource are late: they come when
// LetWatchesGo lets them.
func HoldWatch(resource string) Step {
	return onLine("hold the watch of ", resource, func(_ *World, l *line) { l.held = true })
}

// LetWatchesGo is a step in which all events come that were held.
var LetWatchesGo = network("let the watches go", (*World).letWatchesGo)

// LoseEvents returns a step after which no event of a resource comes, until ExpireWatch.
func LoseEvents(resource string) Step {
	return onLine("lose the events of ", resource, func(_ *World, l *line) { l.lost = true })
}

// ExpireWatch returns a step in which the watches of a resource end with the error 410 Gone, so that
// the controller has to list again.
func ExpireWatch(resource string) Step {
	return onLine("expire the watch of ", resource, (*World).expire)
}

// onLine returns a step that changes what is between the controller and a resource.
func onLine(name, resource string, do func(*World, *line)) Step {
	return network(name+resource, func(w *World) {
		if gvr, _, ok := w.server.Lookup(resource); ok {
			do(w, w.line(gvr.Resource))
		} else {
			w.mistakes = append(w.mistakes, name+resource+": is its definition in CRDs?")
		}
	})
}

// network returns a step that changes what is between the controller and the API server.
func network(name string, do func(*World)) Step {
	return Step{name, func(w *World) {
		w.mu.Lock()
		defer w.mu.Unlock()
		do(w)
	}}
}

// Together returns a step that takes several steps at once.
func Together(name string, steps ...Step) Step {
	return Step{name, func(w *World) {
		for _, s := range steps {
			s.Do(w)
		}
	}}
}

// played returns a step after which users wait, and wait again after what the cluster does then,
// unless they are in a hurry. If no process ran when the step began, one starts after it.
func played(s Step, then ...Step) Step {
	return Step{s.Name, func(w *World) {
		for i, step := range append([]Step{s}, then...) {
			time.Sleep(time.Millisecond) // nobody does two things in the same instant
			w.mu.Lock()
			down := w.down // one that this step kills stays away until the next step is done
			w.mu.Unlock()
			if step.Do(w); i == 0 && down {
				w.startAgain()
			}
			select {
			case <-time.After(w.controller.Delay):
			case <-w.hurry:
				return
			}
		}
	}}
}
