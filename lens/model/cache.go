package model

import (
	"slices"

	"example.com/sample-controller/internal/testing/wire"
)

// cache notes that the program's cache has o now.
func (m *Model) cache(o *wire.Object) {
	known := m.objects[idOf(o)]
	if known == nil {
		known = m.newObject(o)
	}
	if known != nil {
		known.Cached, known.CachedSummary = o.ResourceVersion, o.Summary
		m.showObject(known)
	}
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
			w.behind = nil
			w.replace(m, objects)
			w.to(m, w.State, w.Note)
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

// expectStored notes a change that a watch has yet to bring. Which labels it selects by is not
// known: it brings what belongs to a key if that is new, and what it has brought before.
func (m *Model) expectStored(s *Stored) {
	o := s.Object
	known := m.objects[idOf(o)]
	for _, w := range m.watches {
		selected := s.Type == "ADDED" && m.laneOf(o) != "" || known != nil &&
			(known.Cached != "" || slices.Contains(w.behind, number(known.ResourceVersion)))
		if selected && w.Resource == o.Resource && m.process.State != "exited" &&
			(w.namespace == "" || w.namespace == o.Namespace) {
			w.expect(m, o.ResourceVersion)
		}
	}
}

// expect notes that there is an event that the program has not got.
func (w *watch) expect(m *Model, resourceVersion string) {
	if n := number(resourceVersion); n > w.newest {
		w.newest = n
		w.behind = append(w.behind, n)
		w.to(m, w.State, w.Note)
	}
}

// got notes that the program has got the events up to resourceVersion.
func (w *watch) got(m *Model, resourceVersion string) {
	n := number(resourceVersion)
	w.newest = max(w.newest, n)
	w.behind = slices.DeleteFunc(w.behind, func(v uint64) bool { return v <= n })
	w.to(m, w.State, w.Note)
}
