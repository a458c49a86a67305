package explore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

// Create returns a step that creates an object, which is YAML.
func Create(object string) Step {
	var u unstructured.Unstructured
	err := yaml.Unmarshal([]byte(object), &u.Object)
	if err != nil {
		return Step{Name: "create", Do: func(w *World) { w.mistake("%v in %s", err, object) }}
	}
	name := fmt.Sprintf("create %s %s", u.GetKind(), u.GetName())
	return Step{name, func(w *World) { w.ignore(name, w.create(u.DeepCopy())) }}
}

// Patch returns a step that changes an object by a JSON merge patch, which is YAML. The object is
// "foos/a", "foos/a/status", or "foos/elsewhere/a" in another namespace than the default.
func Patch(object, patch string) Step {
	body, err := yaml.YAMLToJSON([]byte(patch))
	return Step{fmt.Sprintf("patch %s %s", object, oneLine(patch)), func(w *World) {
		if err != nil {
			w.mistake("%v in %s", err, patch)
			return
		}
		w.on(object, func(client dynamic.ResourceInterface, name, subresource string) error {
			_, err := client.Patch(context.Background(), name, types.MergePatchType, body,
				metav1.PatchOptions{}, strings.Fields(subresource)...)
			return err
		})
	}}
}

// Delete returns a step that deletes an object, such as "foos/a", in the background.
func Delete(object string) Step {
	return Step{"delete " + object, func(w *World) {
		w.on(object, func(client dynamic.ResourceInterface, name, _ string) error {
			return client.Delete(context.Background(), name, metav1.DeleteOptions{
				PropagationPolicy: new(metav1.DeletePropagationBackground)})
		})
	}}
}

// Steps that the cluster takes.
var (
	// CollectGarbage is a step in which the garbage collector and the controller of namespaces work.
	CollectGarbage = Step{"collect garbage", func(w *World) {
		w.finishNamespaces()
		w.collectGarbage()
	}}
	// RollOut is a step in which the Pods of all workloads become available.
	RollOut = Step{"roll out", (*World).rollOut}
	// Restart is a step in which the controller is stopped and started.
	Restart = Step{"restart", (*World).restart}
)

// FailWrites returns a step after which the next n writes of the controller fail.
func FailWrites(n int) Step {
	return trouble("fail %d writes", n, apierrors.NewTimeoutError("injected", 0), false)
}

// Conflict returns a step after which the next n writes of the controller conflict, as if somebody
// else had written in between.
func Conflict(n int) Step {
	return trouble("let %d writes conflict", n, apierrors.NewConflict(schema.GroupResource{}, "",
		errors.New("injected")), false)
}

// LoseAnswers returns a step after which the next n writes of the controller happen, but it gets
// an error.
func LoseAnswers(n int) Step {
	return trouble("lose %d answers", n, apierrors.NewTimeoutError("injected", 0), true)
}

func trouble(format string, n int, err error, happens bool) Step {
	return Step{fmt.Sprintf(format, n), locked(func(w *World) {
		w.troubles = append(w.troubles, slices.Repeat([]Answer{{"", err, happens}}, n)...)
	})}
}

// Refuse returns a step after which admission refuses to let the controller create or change
// objects of a resource, such as "deployments".
func Refuse(resource string) Step {
	return Step{"refuse " + resource, locked(func(w *World) { w.refused[resource] = true })}
}

// Accept returns a step that undoes Refuse.
func Accept(resource string) Step {
	return Step{"accept " + resource, locked(func(w *World) { delete(w.refused, resource) })}
}

// HoldWatch returns a step after which the events of a resource, such as "foos", are late: they
// come when LetWatchesGo lets them.
func HoldWatch(resource string) Step {
	return Step{"hold the watch of " + resource, locked(func(w *World) { w.held[resource] = true })}
}

// LetWatchesGo is a step in which all events come that were held.
var LetWatchesGo = Step{"let the watches go", locked((*World).letWatchesGo)}

// LoseWatch returns a step after which no event of a resource comes, until BreakWatch.
func LoseWatch(resource string) Step {
	return Step{"lose the watch of " + resource, locked(func(w *World) { w.lost[resource] = true })}
}

// BreakWatch returns a step in which the watches of a resource end with the error 410 Gone, so that
// the controller has to list again.
func BreakWatch(resource string) Step {
	return Step{"break the watch of " + resource, locked(func(w *World) { w.expire(resource) })}
}

// Together returns a step that takes several steps at once.
func Together(name string, steps ...Step) Step {
	return Step{name, func(w *World) {
		for _, s := range steps {
			s.Do(w)
		}
	}}
}

func locked(do func(*World)) func(*World) {
	return func(w *World) {
		w.mu.Lock()
		defer w.mu.Unlock()
		do(w)
	}
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// Pause is a step that takes a moment, in which the controller does all that it can do at once.
var Pause = Step{"pause", func(*World) { time.Sleep(time.Millisecond) }}

// parse returns what a step is about: "foos/a", "foos/a/status", or "foos/elsewhere/a".
func parse(text string) (resource, namespace, name, subresource string, err error) {
	parts := strings.Split(text, "/")
	if last := parts[len(parts)-1]; len(parts) > 2 && (last == "status" || last == "scale") {
		parts, subresource = parts[:len(parts)-1], last
	}
	switch len(parts) {
	case 2:
		return parts[0], Namespace, parts[1], subresource, nil
	case 3:
		return parts[0], parts[1], parts[2], subresource, nil
	}
	return "", "", "", "", fmt.Errorf("%q: want RESOURCE/NAME or RESOURCE/NAMESPACE/NAME", text)
}

// on calls do, as a user, with a client for what a text names.
func (w *World) on(
	text string, do func(c dynamic.ResourceInterface, name, subresource string) error,
) {
	resource, namespace, name, subresource, err := parse(text)
	gvr, namespaced, ok := w.server.Lookup(resource)
	switch {
	case err != nil:
		w.mistake("%v", err)
	case !ok:
		w.mistake("the API server has no resource %q", resource)
	case namespaced:
		w.ignore(text, do(w.users.Resource(gvr).Namespace(namespace), name, subresource))
	default:
		w.ignore(text, do(w.users.Resource(gvr), name, subresource))
	}
}

// create creates an object as a user.
func (w *World) create(object *unstructured.Unstructured) error {
	gvr, namespaced, ok := w.server.LookupKind(object.GroupVersionKind())
	if !ok {
		return fmt.Errorf("the API server has no kind %v", object.GroupVersionKind())
	}
	namespace := ""
	if namespaced {
		namespace = cmp.Or(object.GetNamespace(), Namespace)
	}
	_, err := w.users.Resource(gvr).Namespace(namespace).Create(context.Background(), object,
		metav1.CreateOptions{})
	return err
}
