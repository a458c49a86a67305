package explore

import (
	"context"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"example.com/sample-controller/explore/apiserver"
)

// A controller that writes one object more often than that in a minute does not come to rest. What
// changes the object may have another writer, which may be in a hurry at first.
const (
	mostChanges = 200
	mostInVain  = 50 // writes that the API server accepts, but that change nothing
)

// slow lets each write take more than a second, so that a time is another one in each write, even if
// it has no fractions of seconds.
func (x *explorer) slow(p plan, _ *result) []plan {
	p.name, p.slow, p.more = path.Join(p.name, "writes"), true, 0
	return []plan{p}
}

// pulse counts the writes of an object in a minute.
type pulse struct {
	begin           time.Time
	changes, inVain int
}

// beat counts a write of the controller that has succeeded, and what it has stored, if anything. It
// notes when there is no end to them. w.mu must be held.
func (w *World) beat(r *apiserver.Request, stored []apiserver.Write) {
	key := strings.Join([]string{r.Resource.Resource, r.Namespace, r.Name}, "/")
	p := w.pulses[key]
	if p == nil || time.Since(p.begin) > time.Minute {
		p = &pulse{begin: time.Now()}
		w.pulses[key] = p
	}
	switch {
	case r.Verb == "delete":
	case len(stored) == 0:
		if p.inVain++; p.inVain == mostInVain {
			w.notRest(fmt.Sprintf("%d times in a minute, it sent a change of %s %s that changed nothing",
				mostInVain, r.Resource.Resource, r.Name))
		}
	case stored[0].Old != nil:
		if p.changes++; p.changes == mostChanges {
			others := ""
			if by := w.writers[stored[0].Old.GetResourceVersion()]; strings.HasPrefix(by, "somebody") {
				others = ", and " + by + " changes it back"
			}
			w.notRest(fmt.Sprintf("each sync changes %s of %s (%s)%s", list(changed(stored[0])),
				nameOf(stored[0].Event), describe(r).about(), others))
		}
	}
}

// notRest notes why a controller does not come to rest. w.mu must be held.
func (w *World) notRest(why string) {
	if why = "the controller never comes to rest: " + why; !slices.Contains(w.unrest, why) {
		w.unrest = append(w.unrest, why)
	}
}

// changed returns the fields that a write has changed, but not those of the API server.
func changed(write apiserver.Write) (fields []string) {
	before, now := fieldsOf(write.Old), fieldsOf(write.New)
	for _, path := range sortedKeys(before, now) {
		isServers := path == "metadata.resourceVersion" || path == "metadata.generation" ||
			strings.HasPrefix(path, "metadata.managedFields")
		if !isServers && !reflect.DeepEqual(before[path], now[path]) {
			fields = append(fields, path)
		}
	}
	return fields
}

// list returns the first few of many fields.
func list(fields []string) string {
	const most = 3
	if more := len(fields) - most; more > 1 {
		return fmt.Sprintf("%s and %d more fields", strings.Join(fields[:most], ", "), more)
	}
	return strings.Join(fields, ", ")
}

// Mutate returns a step after which admission changes all objects of a resource that somebody creates
// or changes, as a MutatingAdmissionPolicy does. It stays so until the end, unless another step
// Mutate for the resource has no function.
func Mutate(resource, what string, mutate func(*unstructured.Unstructured)) Step {
	return onLine("admission: "+what+" in ", resource, func(_ *World, l *line) { l.mutate = mutate })
}

// Insist returns a step after which another writer patches an object, as [Patch] does, each time
// somebody has changed it. It ends with Relent, and in the end.
func Insist(object, patch string) Step {
	name := fmt.Sprintf("another writer insists on %s %s", object,
		strings.Join(strings.Fields(patch), " "))
	var insist func(*World)
	step := on(name, object, func(c dynamic.ResourceInterface, name string, sub ...string) error {
		body, err := yaml.YAMLToJSON([]byte(patch))
		if err == nil {
			_, err = c.Patch(context.Background(), name, types.MergePatchType, body,
				metav1.PatchOptions{FieldManager: "another-writer"}, sub...)
		}
		return err
	})
	insist = func(w *World) {
		w.mu.Lock()
		goesOn := w.insist != nil
		w.mu.Unlock()
		if goesOn {
			step.Do(w)
		}
	}
	resource, _, _ := strings.Cut(object, "/")
	return Step{name, func(w *World) {
		gvr, _, _ := w.server.Lookup(resource)
		w.mu.Lock()
		w.insist = func(r *apiserver.Request) {
			if r.Resource == gvr {
				time.AfterFunc(10*time.Millisecond, func() { insist(w) })
			}
		}
		w.mu.Unlock()
		step.Do(w)
	}}
}

// Relent is a step that ends Insist.
var Relent = network("the other writer relents", func(w *World) { w.insist = nil })

// admit changes an object as admission does.
func (w *World) admit(r *apiserver.Request, object *unstructured.Unstructured) {
	w.mu.Lock()
	mutate := w.line(r.Resource.Resource).mutate
	w.mu.Unlock()
	if mutate != nil && r.Subresource == "" {
		mutate(object)
	}
}

const withoutReason = "although nothing had happened for a long time"

// unrestOf returns what goes on changing although nothing happens.
func (w *World) unrestOf(writes []apiserver.Write, since int64) (unrest []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, write := range writes {
		if write.Revision <= since {
			continue
		}
		what := "was written"
		if fields := changed(write); write.Type == "MODIFIED" && len(fields) > 0 {
			by := w.writers[write.Event.GetResourceVersion()]
			what = fmt.Sprintf("goes on changing (%s, by %s)", list(fields), by)
		}
		unrest = append(unrest, fmt.Sprintf("%s %s %s", nameOf(write.Event), what, withoutReason))
	}
	return slices.Compact(unrest)
}
