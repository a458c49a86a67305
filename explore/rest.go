package explore

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"example.com/sample-controller/explore/apiserver"
)

// A controller that writes one object more often than that in a minute does not come to rest. What
// changes the object may have another writer, which may be in a hurry at first.
const (
	mostChanges = 200
	mostInVain  = 50 // writes that the API server accepts, but that change nothing
)

// pulse counts the writes of an object in a minute.
type pulse struct {
	begin           time.Time
	changes, inVain int
}

// beat counts a write of the controller that has succeeded, and what it has stored, if that is among
// the last changes. It notes when there is no end to them.
func (v *verdicts) beat(r *apiserver.Request, changes []change) {
	key := strings.Join([]string{r.Resource.Resource, r.Namespace, r.Name}, "/")
	p := v.pulses[key]
	if p == nil || time.Since(p.begin) > time.Minute {
		p = &pulse{begin: time.Now()}
		v.pulses[key] = p
	}
	i := slices.IndexFunc(changes, func(c change) bool { return c.request == r })
	switch {
	case r.Verb == "delete":
	case i < 0:
		if p.inVain++; p.inVain == mostInVain {
			v.notRest(fmt.Sprintf("%d times in a minute, it sent a change of %s %s that changed nothing",
				mostInVain, r.Resource.Resource, r.Name))
		}
	case changes[i].Old != nil:
		if p.changes++; p.changes == mostChanges {
			v.notRest(fmt.Sprintf("each sync changes %s of %s (%s)%s", list(changed(changes[i].Write)),
				nameOf(changes[i].Event), changes[i].writer(), v.otherWriter(changes[i].Old)))
		}
	}
}

// otherWriter says who wrote an object, unless that was the controller.
func (w *World) otherWriter(object *object) string {
	for _, c := range w.recorded().changes {
		if c.Event.GetResourceVersion() == object.GetResourceVersion() && !c.byController() {
			return ", and " + c.writer() + " changes it back"
		}
	}
	return ""
}

// notRest notes why a controller does not come to rest. From then on, its requests take time.
func (v *verdicts) notRest(why string) {
	if why = "the controller never comes to rest: " + why; !slices.Contains(v.unrest, why) {
		v.unrest = append(v.unrest, why)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.slowed = true
}

// changed returns the fields that a write has changed, but not those of the API server.
func changed(write apiserver.Write) (fields []string) {
	before, now := fieldsOf(write.Old), fieldsOf(write.New)
	for _, path := range keysOf(before, now) {
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

const withoutReason = "although nothing had happened for a long time"

// unrestSince returns what goes on changing although nothing happens.
func (w *World) unrestSince(revision int64) (unrest []string) {
	for _, c := range w.recorded().changes {
		if c.Revision <= revision {
			continue
		}
		what := "was written"
		if fields := changed(c.Write); c.Type == watch.Modified && len(fields) > 0 {
			what = fmt.Sprintf("goes on changing (%s, by %s)", list(fields), c.writer())
		}
		unrest = append(unrest, fmt.Sprintf("%s %s %s", nameOf(c.Event), what, withoutReason))
	}
	slices.Sort(unrest)
	return slices.Compact(unrest)
}
