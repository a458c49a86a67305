package explore

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/sample-controller/explore/apiserver"
)

// stored notes what the API server stores, and by whom. The API server is locked meanwhile.
func (w *World) stored(r *apiserver.Request, write apiserver.Write) {
	if isSideshow(r.Resource.Resource) {
		return
	}
	w.mu.Lock()
	if w.insist != nil {
		w.insist(r)
	}
	w.wake()
	if _, isController := r.Interceptor().(*process); isController {
		w.writes = append(w.writes, write)
		w.writers[write.Event.GetResourceVersion()] = describe(r).about()
	} else {
		w.noteSet(r, write)
		w.writers[write.Event.GetResourceVersion()] = "somebody else (" + r.Options.FieldManager + ")"
	}
	w.mu.Unlock()
	if r.Resource.Resource != "namespaces" {
		w.shootRequest(r, Shot{What: "stored", Type: write.Type, Object: write.Event})
	}
}

// noteSet notes which fields a user has set, but not what the API server has filled in. w.mu must be
// held.
func (w *World) noteSet(r *apiserver.Request, write apiserver.Write) {
	uid := write.Event.GetUID()
	if write.Old == nil && r.Body != nil {
		w.set[uid] = fieldsOf(r.Body)
		return
	}
	fields := fieldsOf(write.New)
	for _, path := range changed(write) {
		if w.set[uid] == nil {
			w.set[uid] = map[string]any{}
		}
		w.set[uid][path] = fields[path]
	}
}

// fieldsOf returns all values of an object, by path. It may be nil.
func fieldsOf(o *unstructured.Unstructured) map[string]any {
	fields := map[string]any{}
	if o != nil {
		flatten("", o.Object, func(path string, value any) { fields[path] = value })
	}
	return fields
}

// judge counts a write of the controller, and notes what speaks against it.
func (w *World) judge(r *apiserver.Request, write apiserver.Write) {
	what := Write{
		Verb: r.Verb, Resource: r.Resource.Resource, Subresource: r.Subresource,
		Old: write.Old, New: write.New,
	}
	reason := ""
	if w.controller.Always != nil {
		reason = w.controller.Always(what, w.State())
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	deletes := strings.HasPrefix(r.Verb, "delete") // and not the removal of the last finalizer
	switch {
	case write.Type == watch.Added:
		w.written[deed{"created", what.Resource}]++
		w.own[write.New.GetUID()] = true
	case deletes && write.Old.GetDeletionTimestamp() == nil:
		w.written[deed{"deleted", what.Resource}]++
	}
	switch {
	case reason == "":
	case deletes:
		w.deletions = append(w.deletions, what.sentence(reason))
	default:
		w.unasked = append(w.unasked, what.sentence(reason))
	}
	if write.Old != nil && !w.own[write.Old.GetUID()] && r.Subresource != "status" && !r.IsCustom() {
		w.judgeForeign(what, write, deletes)
	}
}

// doing is what the controller does to an object that somebody else has created.
type doing struct {
	sentence string
	deletes  bool
}

// judgeForeign notes what a write does to an object that somebody else has created. What the
// undisturbed run does, too, is meant: see unmeant. But nothing may take away what users have set.
// w.mu must be held.
func (w *World) judgeForeign(what Write, write apiserver.Write, deletes bool) {
	const reason = "it belongs to somebody else, and stays as it is if nothing goes wrong"
	name := nameOf(write.Old)
	if deletes {
		w.foreign[name] = doing{what.sentence(reason), true}
		return
	}
	write.New = write.Event // also if it has gone with its last finalizer
	old, set := fieldsOf(write.Old), w.set[write.Old.GetUID()]
	var taken []string
	for _, path := range changed(write) {
		mark := slices.ContainsFunc(marks, func(mark string) bool { return strings.HasPrefix(path, mark) })
		users, isSet := set[path]
		switch {
		case isSet && same(users, old[path]) && !strings.HasPrefix(path, "status."):
			taken = append(taken, path)
		case !mark:
			w.foreign[name+" "+path] = doing{what.sentence(reason) + ": " + path, false}
		}
	}
	if len(taken) > 0 {
		w.taken = append(w.taken, what.sentence("users had set its "+list(taken)))
	}
}

// marks begin the paths of what many controllers write into objects of users.
var marks = []string{"metadata.labels.", "metadata.annotations.", "metadata.finalizers[", "status."}

func same(a, b any) bool { return fmt.Sprint(a) == fmt.Sprint(b) }

// unmeant notes what was done to objects of others, and is not done in the undisturbed run.
func (r *result) unmeant(calm *result) {
	for _, key := range slices.Sorted(maps.Keys(r.foreign)) {
		switch did := r.foreign[key]; {
		case calm.foreign[key] != doing{}:
		case did.deletes:
			r.deletions = append(r.deletions, did.sentence)
		default:
			r.unasked = append(r.unasked, did.sentence)
		}
	}
}

// doneAfter returns what the controller has done since a revision, but not what differs only in a time.
func (w *World) doneAfter(revision int64) (done []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, write := range w.writes {
		if write.Revision <= revision {
			continue
		}
		what := Write{Verb: string(write.Type), Old: write.Old, New: write.New}
		old, written := fieldsOf(write.Old), fieldsOf(write.New)
		fields := slices.DeleteFunc(changed(write), func(path string) bool {
			before, now := old[path], written[path]
			return before != nil && now != nil && normal(path, before, 0, nil) == normal(path, now, 0, nil)
		})
		if write.Type == watch.Modified && len(fields) == 0 {
			continue
		}
		sentence := what.sentence("nothing had happened: a new process did that, so the last one left " +
			"it undone, or the new one has forgotten why")
		if write.Type == watch.Modified {
			sentence += " (" + list(fields) + ")"
		}
		done = append(done, sentence)
	}
	return slices.Compact(done)
}
