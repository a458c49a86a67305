package explore

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	storagenames "k8s.io/apiserver/pkg/storage/names"
)

// picture is what a state looks like: the values of all fields of all objects, without what differs
// from run to run, such as UIDs and times.
type picture map[string]map[string]string // by object, by field

func (w *World) picture() picture { return pictureOf(w.objects()) }

func pictureOf(all []*object) picture {
	p := picture{}
	names := map[types.UID]string{}
	var long [][2]string // generated names, and what they were generated from
	for _, o := range all {
		name := nameOfRun(o)
		names[o.GetUID()] = "the UID of " + o.GetKind() + " " + name
		if name != o.GetName() {
			long = append(long, [2]string{o.GetName(), name})
		}
	}
	slices.SortFunc(long, func(a, b [2]string) int { return len(b[0]) - len(a[0]) })
	without := func(text string) string { // suffixes, wherever a name stands, even in another one
		for _, name := range long {
			text = strings.ReplaceAll(text, name[0], name[1])
		}
		return text
	}
	alike := map[string][]map[string]string{} // generated names
	for _, o := range all {
		name := nameOfRun(o)
		if namespace := o.GetNamespace(); namespace != Namespace && namespace != "" {
			name = namespace + "/" + name
		}
		fields := map[string]string{}
		flatten("", o.Object, func(path string, value any) {
			if text := normal(path, value, o.GetGeneration(), names); text != "" {
				fields[without(path)] = without(text)
			}
		})
		key := o.GetKind() + " " + without(name)
		alike[key] = append(alike[key], fields)
	}
	for key, all := range alike {
		slices.SortFunc(all, func(a, b map[string]string) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		p[key] = all[0]
		for i, fields := range all[1:] {
			p[fmt.Sprintf("%s (%d)", key, i+2)] = fields
		}
	}
	return p
}

// nameOfRun returns the name of an object, or that from which an API server has generated the name.
func nameOfRun(o *object) string {
	prefix := o.GetGenerateName()
	prefix = prefix[:min(len(prefix), storagenames.MaxGeneratedNameLength)]
	if prefix != "" && generated.MatchString(strings.TrimPrefix(o.GetName(), prefix)) {
		return prefix
	}
	return o.GetName()
}

// generated matches what an API server appends to a metadata.generateName. A Pod a-1 of a StatefulSet
// has one, too, but its name says which it is.
var generated = regexp.MustCompile(`^[bcdfghjklmnpqrstvwxz2456789]{5}$`)

var uid = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// normal returns a value without what differs from run to run, or "" if nothing is left.
func normal(path string, value any, generation int64, names map[types.UID]string) string {
	switch path {
	case "apiVersion", "kind", "metadata.name", "metadata.uid", "metadata.resourceVersion",
		"metadata.generation":
		return ""
	}
	if strings.HasSuffix(path, "bservedGeneration") {
		return fmt.Sprintf("metadata.generation: %v", value == generation)
	}
	if strings.HasPrefix(path, "metadata.managedFields") ||
		strings.HasSuffix(path, ".resourceVersion") { // in a reference
		return ""
	}
	if text, is := value.(string); is {
		if _, err := time.Parse(time.RFC3339, text); err == nil {
			return "a time"
		}
		value = uid.ReplaceAllStringFunc(text, func(uid string) string {
			return cmp.Or(names[types.UID(uid)], "the UID of something that is gone")
		})
	}
	body, _ := json.Marshal(value) // a string, a number or a boolean
	return string(body)
}

// flatten calls visit for each value, with its path, such as "status.conditions[Ready].reason".
func flatten(path string, value any, visit func(string, any)) {
	join := func(key string) string { return strings.TrimPrefix(path+"."+key, ".") }
	switch value := value.(type) {
	case map[string]any:
		for key, value := range value {
			flatten(join(key), value, visit)
		}
	case []any:
		names := namesIn(value, path == "metadata.finalizers")
		for i, value := range value {
			flatten(fmt.Sprintf("%s[%v]", path, names[i]), value, visit)
		}
	case nil:
	default:
		visit(path, value)
	}
}

// namesIn returns what to call the elements of a list: by the field that tells them apart, as the
// merge keys of most lists do, by themselves if it is a set, or by their numbers.
func namesIn(list []any, isSet bool) []any {
	names := make([]any, len(list))
	for _, key := range []string{"type", "name", "key", "containerPort", "port", "mountPath", "ip"} {
		seen := map[any]bool{}
		for i, element := range list {
			fields, _ := element.(map[string]any)
			switch names[i] = fields[key]; names[i].(type) {
			case string, int64, float64:
				seen[names[i]] = true
			}
		}
		if len(seen) == len(list) {
			return names
		}
	}
	for i, element := range list {
		if names[i] = i; isSet {
			names[i] = element
		}
	}
	return names
}

// state returns a text that is the same if the objects look the same, and the same goes wrong.
func (w *World) state() string {
	text := fmt.Sprint(w.picture())
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range w.hooks {
		text += h.what
	}
	for _, name := range slices.Sorted(maps.Keys(w.lines)) {
		l := w.lines[name]
		text += fmt.Sprint(name, l.refused, l.lost, l.held)
	}
	return text
}

// differences says how a state differs from the one that the undisturbed run ends with.
func (p picture) differences(calm picture) (differences []string) {
	const calmly = "if nothing goes wrong"
	for _, name := range keysOf(p, calm) {
		got, want := p[name], calm[name]
		switch {
		case got == nil:
			differences = append(differences, "there is no "+name+", but there is one "+calmly)
			continue
		case want == nil:
			differences = append(differences, "the "+name+" is left, but there is none "+calmly)
			continue
		}
		for _, field := range keysOf(got, want) {
			if got[field] != want[field] {
				differences = append(differences, fmt.Sprintf("the %s has %s %s, but %s %s", name, field,
					cmp.Or(got[field], "unset"), cmp.Or(want[field], "unset"), calmly))
			}
		}
	}
	return differences
}

// keysOf returns the keys of both, sorted.
func keysOf[T any](a, b map[string]T) []string {
	return sets.List(sets.KeySet(a).Union(sets.KeySet(b)))
}
