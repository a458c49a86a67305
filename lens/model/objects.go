package model

import (
	"slices"
	"strconv"
	"strings"

	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/lens/wire"
)

// object is an object in the API server, in the program's cache, or in both.
type object struct {
	Object
	id   string
	last *wire.Object // as it was seen last
}

// seeStored applies what the API server stores now.
func (m *Model) seeStored(s *Stored) {
	if s.Object == nil || isEvents(s.Object.Resource) {
		return
	}
	m.learn(s.Object)
	m.stored[s.Object.Resource] = true
	m.store(s.Type, s.Object)
	if !s.Initial {
		m.noteChange(change{m.at, s.Type, s.Object})
	}
}

// store notes that the API server has o now, or that o is deleted.
func (m *Model) store(typ string, o *wire.Object) {
	if typ == "DELETED" && m.objects[idOf(o)] == nil {
		return
	}
	known := m.object(o)
	if typ == "DELETED" {
		known.last, known.ResourceVersion, known.Summary, known.Deleting = o, "", "", false
	} else if number(o.ResourceVersion) >= number(known.ResourceVersion) {
		if o.Summary != known.Summary && strings.HasSuffix(o.Summary, "NameTaken") {
			m.note(m.laneOf(o), "taken", "%s has to wait: another object has the name.", o.Name)
		}
		known.last, known.ResourceVersion = o, o.ResourceVersion
		known.Summary, known.Deleting = o.Summary, o.Deleting
	}
	m.showObject(known)
}

// object returns what is known of o. That is new if o was not known.
func (m *Model) object(o *wire.Object) *object {
	known := m.objects[idOf(o)]
	if known == nil {
		known = &object{id: idOf(o), last: o, Object: Object{
			Resource: o.Resource, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}}
		m.objects[known.id] = known
	}
	return known
}

// showObject shows o, or forgets o if it is nowhere.
func (m *Model) showObject(o *object) {
	if o.ResourceVersion == "" && o.Cached == "" {
		delete(m.objects, o.id)
		m.drop(o.id)
		return
	}
	o.Owner = ""
	if owner := o.last.Owner; owner != nil && m.resources[owner.Kind] != "" {
		o.Owner = objectID(m.resources[owner.Kind], o.Namespace, owner.Name)
	}
	m.show(o.id, &o.Object)
}

// laneOf returns the key that o belongs to: its own, or that of its owner, or that of the owner of
// its owner. It returns an empty string if there is none. If an object has no owner, the one whose
// UID it selects by is taken for it.
func (m *Model) laneOf(o *wire.Object) string {
	for range 5 { // a Pod, its ReplicaSet, its Deployment, its Foo
		if o.Resource == m.process.Primary {
			return cache.NewObjectName(o.Namespace, o.Name).String()
		}
		if o.Owner == nil {
			if o = m.selected(o.Selects); o == nil {
				return ""
			}
			continue
		}
		resource := m.resources[o.Owner.Kind]
		if resource != "" && resource == m.process.Primary {
			return cache.NewObjectName(o.Namespace, o.Owner.Name).String()
		}
		owner := m.objects[objectID(resource, o.Namespace, o.Owner.Name)]
		if owner == nil {
			return ""
		}
		o = owner.last
	}
	return ""
}

// selected returns the object whose UID is one of these labels, or nil.
func (m *Model) selected(labels []string) *wire.Object {
	for _, known := range m.objects {
		if slices.Contains(labels, known.last.UID) {
			return known.last
		}
	}
	return nil
}

// number returns a resourceVersion as a number, or 0 if it is none. Those of one resource can be
// compared.
func number(resourceVersion string) uint64 {
	n, _ := strconv.ParseUint(resourceVersion, 10, 64)
	return n
}

// cache notes that the program's cache has o now.
func (m *Model) cache(o *wire.Object) {
	known := m.object(o)
	known.Cached, known.CachedSummary = o.ResourceVersion, o.Summary
	m.showObject(known)
}

// uncache notes that the program's cache does not have o.
func (m *Model) uncache(o *object) {
	if o != nil {
		o.Cached, o.CachedSummary = "", ""
		m.showObject(o)
	}
}

// listed notes the answer of a list. What was in it is not known: it is taken for what is stored
// and belongs to a key.
func (m *Model) listed(resource string, failed bool) {
	if failed {
		return
	}
	var objects []*wire.Object
	for _, o := range m.objects {
		if o.Resource == resource && o.ResourceVersion != "" &&
			(o.Cached != "" || m.laneOf(o.last) != "") {
			objects = append(objects, o.last)
		}
	}
	for _, w := range m.watches {
		if w.Resource == resource {
			w.replace(m, objects)
		}
	}
}

// replace notes that the cache has these objects and no others.
func (w *watch) replace(m *Model, objects []*wire.Object) {
	for _, o := range m.objects {
		if o.Resource == w.Resource && o.Cached != "" {
			m.uncache(o)
		}
	}
	for _, o := range objects {
		m.cache(o)
	}
	lesson := ""
	if w.expired {
		lesson = "expired"
	}
	m.note("", lesson, "The cache of %s was filled from a list. It has %d now.", w.name, len(objects))
	w.initial, w.expired = nil, false
}
