package explore

import (
	"fmt"
	"path"
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

// beat is one of the writes of an object in a minute. They are counted.
type beat struct {
	object string
	minute time.Time
	inVain bool // it has changed nothing
}

// count counts a write of the controller that has succeeded. What it has stored, if anything, is among the
// last changes. count notes when there is no end to such writes.
func (v *verdicts) count(r *apiserver.Request, changes []change) {
	i := slices.IndexFunc(changes, func(c change) bool { return c.request == r })
	if strings.HasPrefix(r.Verb, "delete") || i >= 0 && changes[i].Old == nil {
		return
	}
	b := beat{path.Join(r.Resource.Resource, r.Namespace, r.Name), time.Now().Truncate(time.Minute), i < 0}
	v.beats[b]++
	switch n := v.beats[b]; {
	case b.inVain && n == mostInVain:
		v.notRest(fmt.Sprintf("%d times in a minute, it sent a change of %s %s that changed nothing",
			n, r.Resource.Resource, r.Name))
	case !b.inVain && n == mostChanges:
		v.notRest(fmt.Sprintf("each sync changes %s of %s (%s)%s", list(changed(changes[i].Write)),
			nameOf(changes[i].Event), changes[i].writer(), v.otherWriter(changes[i].Old)))
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
