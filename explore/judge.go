package explore

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/sample-controller/explore/apiserver"
)

// result is what came of a case.
type result struct {
	record              // until the verdict; its requests and events until the faults ended
	findings            // until the verdict
	last      []Request // before the verdict
	problems  []string
	remark    string  // what puts the problems right, or ""
	differs   string  // how the end differs from that of the undisturbed run
	state     string  // after the last step of a history
	end       picture // nil if it may differ
	disturbed ends    // of the other cases, if this is the undisturbed one
	steps     []int64 // for each step, the revision after it
}

// wrong returns all that is wrong, in words.
func (r *result) wrong() []string {
	wrong := slices.Concat(r.unrest, r.taken, r.deletions, r.unasked, r.problems)
	if len(r.problems) > 0 && r.remark != "" {
		wrong = append(wrong, r.remark)
	}
	for _, request := range r.restless {
		wrong = append(wrong, "the controller makes one request after the other at once: "+request)
	}
	return wrong
}

// verdicts is what is wrong in a case, and how it is found in the changes of its world.
type verdicts struct {
	*World
	findings

	seen  int                // how many of the changes
	own   map[types.UID]bool // what the controller has created
	set   map[[2]string]any  // the fields that others have set, by UID and path
	beats map[beat]int       // how often the controller writes
}

// findings is what the writes of a controller tell. The world's mutex serving guards it.
type findings struct {
	written   map[deed]int     // by the controller
	foreign   map[string]doing // what the controller did to objects of others
	unrest    []string         // objects that are written without end
	unasked   []string         // creations and changes that the newest state did not ask for
	deletions []string         // such deletions
	taken     []string         // what users had set, and the controller took away
}

// deed is what the controller does several times: objects of a resource are "created" or "deleted".
type deed struct{ what, resource string }

// newVerdicts returns verdicts that look at each write of the controller.
func newVerdicts(w *World) *verdicts {
	v := &verdicts{World: w, own: map[types.UID]bool{}, set: map[[2]string]any{},
		beats:    map[beat]int{},
		findings: findings{written: map[deed]int{}, foreign: map[string]doing{}}}
	w.wrote = v.look
	return v
}

// look judges the changes since the last look, after a request of the controller.
func (v *verdicts) look(r *apiserver.Request) {
	v.mu.Lock()
	changes := v.changes[v.seen:]
	v.mu.Unlock()
	v.seen += len(changes)
	v.count(r, changes)
	for _, c := range changes {
		if c.byController() {
			v.judge(c)
		} else {
			v.noteSet(c)
		}
	}
}

// noteSet notes which fields a user has set, but not what the API server has filled in.
func (v *verdicts) noteSet(c change) {
	fields := fieldsOf(c.New)
	if c.Old == nil && c.request.Body != nil {
		fields = fieldsOf(c.request.Body)
	}
	for _, path := range changed(c.Write) {
		key := [2]string{string(c.Event.GetUID()), path}
		if value, isSet := fields[path]; isSet {
			v.set[key] = value
		} else if c.Old != nil {
			delete(v.set, key)
		}
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
func (v *verdicts) judge(c change) {
	r := c.request
	what := Write{
		Verb: r.Verb, Resource: r.Resource.Resource, Subresource: r.Subresource, Old: c.Old, New: c.New,
	}
	deletes := strings.HasPrefix(r.Verb, "delete") // and not the removal of the last finalizer
	switch {
	case c.Type == watch.Added:
		v.written[deed{"created", what.Resource}]++
		v.own[c.New.GetUID()] = true
	case deletes && c.Old.GetDeletionTimestamp() == nil:
		v.written[deed{"deleted", what.Resource}]++
	}
	if v.controller.Always != nil {
		if reason := v.controller.Always(what, v.State()); reason != "" {
			v.add(doing{what.sentence(reason), deletes})
		}
	}
	if c.Old != nil && !v.own[c.Old.GetUID()] && r.Subresource != "status" && !r.IsCustom() {
		v.judgeForeign(what, c.Write, deletes)
	}
}

// doing is what the controller does to an object although something speaks against it.
type doing struct {
	sentence string
	deletes  bool
}

func (f *findings) add(d doing) {
	if d.deletes {
		f.deletions = append(f.deletions, d.sentence)
	} else {
		f.unasked = append(f.unasked, d.sentence)
	}
}

// judgeForeign notes what a write does to an object that somebody else has created. What the
// undisturbed run does, too, is meant: see unmeant. But nothing may take away what users have set.
func (v *verdicts) judgeForeign(what Write, write apiserver.Write, deletes bool) {
	const reason = "it belongs to somebody else, and stays as it is if nothing goes wrong"
	name := nameOf(write.Old)
	if deletes {
		v.foreign[name] = doing{what.sentence(reason), true}
		return
	}
	write.New = write.Event // also if it has gone with its last finalizer
	old := fieldsOf(write.Old)
	var taken []string
	for _, path := range changed(write) {
		mark := slices.ContainsFunc(marks, func(mark string) bool { return strings.HasPrefix(path, mark) })
		users, isSet := v.set[[2]string{string(write.Old.GetUID()), path}]
		switch {
		case isSet && fmt.Sprint(users) == fmt.Sprint(old[path]) && !strings.HasPrefix(path, "status."):
			taken = append(taken, path)
		case !mark:
			v.foreign[name+" "+path] = doing{what.sentence(reason) + ": " + path, false}
		}
	}
	if len(taken) > 0 {
		v.taken = append(v.taken, what.sentence("users had set its "+list(taken)))
	}
}

// marks begin the paths of what many controllers write into objects of users.
var marks = []string{"metadata.labels.", "metadata.annotations.", "metadata.finalizers[", "status."}

// unmeant notes what was done to objects of others, and is not done in the undisturbed run.
func (r *result) unmeant(calm *result) {
	for _, key := range slices.Sorted(maps.Keys(r.foreign)) {
		if calm.foreign[key] == (doing{}) {
			r.add(r.foreign[key])
		}
	}
}

// doneAfter returns what the controller has done since a revision, but not what differs only in a time.
func (w *World) doneAfter(revision int64) (done []string) {
	for _, c := range w.recorded().changes {
		before, after := fieldsOf(c.Old), fieldsOf(c.New)
		fields := slices.DeleteFunc(changed(c.Write), func(path string) bool {
			old, now := before[path], after[path]
			return old != nil && now != nil && normal(path, old, 0, nil) == normal(path, now, 0, nil)
		})
		if c.Revision <= revision || !c.byController() || len(fields) == 0 {
			continue
		}
		reason := "nothing had happened: a new process did that, so the last one left it undone, or the " +
			"new one has forgotten why"
		if c.Type == watch.Modified {
			reason += " (" + list(fields) + ")"
		}
		done = append(done, Write{Verb: string(c.Type), Old: c.Old, New: c.New}.sentence(reason))
	}
	return slices.Compact(done)
}

// nameOf returns what people call an object, such as "the Deployment x of Foo a".
func nameOf(u *unstructured.Unstructured) string {
	name := fmt.Sprintf("the %s %s", u.GetKind(), u.GetName())
	if namespace := u.GetNamespace(); namespace != "" && namespace != Namespace {
		name += " in " + namespace
	}
	if owner := metav1.GetControllerOf(u); owner != nil {
		name += fmt.Sprintf(" of %s %s", owner.Kind, owner.Name)
	}
	return name
}

// sentence says what a write did, and what speaks against it.
func (w Write) sentence(reason string) string {
	did, object := "changed", w.Old
	switch {
	case w.Old == nil:
		did, object = "created", w.New
	case strings.HasPrefix(strings.ToLower(w.Verb), "delete"):
		did = "deleted"
	}
	if w.Subresource != "" {
		did = "changed in its " + w.Subresource
	}
	return fmt.Sprintf("%s was %s although %s", nameOf(object), did, reason)
}

// ends counts how the disturbed cases of a scenario end, by how they differ from the undisturbed run.
type ends map[string]int

// agreement says that most disturbed cases end alike, but otherwise than the undisturbed one, or "".
func (e ends) agreement(scenario string) string {
	all := 0
	for _, n := range e {
		all += n
	}
	for how, n := range e {
		if how != "" && n > 2 && 2*n > all {
			return fmt.Sprintf("\nOf the %d disturbed runs of the scenario %s, %d end alike, but otherwise than "+
				"the undisturbed run. So look at that first, it may be what is wrong: %s", all, scenario, n, how)
		}
	}
	return ""
}
