package model

import "example.com/sample-controller/internal/testing/wire"

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
