package apiserver

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"sort"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
)

// table has the objects of a resource, and all that was written to it.
type table struct {
	objects map[string]*unstructured.Unstructured // by keyOf
	history []Write
	watches []*Watch
}

// Write is a change of an object. Its objects must not be changed.
type Write struct {
	Revision int64
	Type     watch.EventType
	Old, New *unstructured.Unstructured // Old is nil if Type is Added, and New if it is Deleted
	Event    *unstructured.Unstructured // what a watch shows
}

func keyOf(namespace, name string) string { return path.Join("/", namespace, name) }

func (s *Server) table(k *kind) *table {
	t := s.tables[k.gvr]
	if t == nil {
		t = &table{objects: map[string]*unstructured.Unstructured{}}
		s.tables[k.gvr] = t
	}
	return t
}

// commit writes an object, and tells the watches. With deleted, object is the last state.
func (s *Server) commit(r *Request, old, object *unstructured.Unstructured, deleted bool) {
	s.revision++
	object.SetResourceVersion(strconv.FormatInt(s.revision, 10))
	s.encoded.Store(object, marshal(object.Object)) // it does not change any more
	t, key := s.table(r.kind), keyOf(object.GetNamespace(), object.GetName())
	write := Write{s.revision, watch.Modified, old, object, object}
	if t.objects[key] = object; old == nil {
		write.Type = watch.Added
	}
	if deleted {
		write.Type, write.New = watch.Deleted, nil
		delete(t.objects, key)
	}
	t.history = append(t.history, write)
	if s.OnWrite != nil {
		s.OnWrite(r, write)
	}
	t.watches = slices.DeleteFunc(t.watches, (*Watch).Done)
	for _, w := range slices.Clone(t.watches) {
		w.notify(write)
	}
}

// since returns the writes after a revision.
func (t *table) since(revision int64) []Write {
	begin := sort.Search(len(t.history), func(i int) bool { return t.history[i].Revision > revision })
	return t.history[begin:]
}

// at returns the objects of a revision.
func (t *table) at(revision int64) map[string]*unstructured.Unstructured {
	later := len(t.since(revision))
	if later == 0 {
		return t.objects
	}
	objects := map[string]*unstructured.Unstructured{}
	for _, write := range t.history[:len(t.history)-later] {
		key := keyOf(write.Event.GetNamespace(), write.Event.GetName())
		if objects[key] = write.New; write.New == nil {
			delete(objects, key)
		}
	}
	return objects
}

// sorted returns the objects that a request selects, in order.
func (s *Server) sorted(r *Request, revision int64) []*unstructured.Unstructured {
	at, objects := s.table(r.kind).at(revision), []*unstructured.Unstructured{}
	for _, key := range slices.Sorted(maps.Keys(at)) {
		if object := at[key]; r.selects(object) {
			objects = append(objects, object)
		}
	}
	return objects
}

// selects reports whether the request is for this object.
func (r *Request) selects(object *unstructured.Unstructured) bool {
	if r.Namespace != "" && object.GetNamespace() != r.Namespace {
		return false
	}
	with := r.List.LabelSelector
	if with != nil && !with.Empty() && !with.Matches(labels.Set(object.GetLabels())) {
		return false
	}
	if r.List.FieldSelector == nil || r.List.FieldSelector.Empty() {
		return true
	}
	set := fields.Set{"metadata.name": object.GetName(), "metadata.namespace": object.GetNamespace()}
	for _, field := range r.kind.Fields {
		if value, found, _ := nested(object.Object, field); found {
			set[field] = fmt.Sprint(value)
		} else if field == "spec.unschedulable" || field == "spec.hostNetwork" {
			set[field] = "false"
		}
	}
	return r.List.FieldSelector.Matches(set)
}

func (s *Server) get(r *Request) (*Response, error) {
	object := s.existing(r)
	if object == nil {
		return nil, r.notFound()
	}
	return &Response{Code: 200, Object: object}, nil
}

// existing returns the object of a request, or nil.
func (s *Server) existing(r *Request) *unstructured.Unstructured {
	return s.table(r.kind).objects[keyOf(r.Namespace, r.Name)]
}

// parseRevision reads a resourceVersion; the empty one is 0.
func (s *Server) parseRevision(r *Request) (int64, error) {
	revision, err := strconv.ParseUint(cmp.Or(r.List.ResourceVersion, "0"), 10, 63)
	switch {
	case err != nil:
		err = apierrors.NewBadRequest("invalid resource version: " + err.Error())
	case revision > uint64(s.revision):
		err = storage.NewTooLargeResourceVersionError(revision, uint64(s.revision), 1)
	}
	return int64(revision), err
}

func (s *Server) list(r *Request) (*Response, error) {
	revision, err := s.parseRevision(r)
	if err != nil {
		return nil, err
	}
	shown := s.revision
	switch {
	case r.List.ResourceVersionMatch == metav1.ResourceVersionMatchExact:
		shown = revision
	case r.AsOf > 0:
		shown = max(r.AsOf, revision)
	}
	return s.listAt(r, shown), nil
}

// listAt returns the list of a revision.
func (s *Server) listAt(r *Request, revision int64) *Response {
	list := map[string]any{"kind": r.kind.listKind, "apiVersion": r.kind.gvk.GroupVersion().String(),
		"metadata": map[string]any{"resourceVersion": strconv.FormatInt(revision, 10)}}
	return &Response{Code: 200, Object: &unstructured.Unstructured{Object: list},
		items: s.sorted(r, revision)}
}

// List returns the objects of a resource, in the order of a list. They must not be changed.
func (s *Server) List(resource schema.GroupVersionResource) []*unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.kinds[resource]; k != nil {
		return s.sorted(&Request{kind: k}, s.revision)
	}
	return nil
}

// Revision returns the revision of the last write.
func (s *Server) Revision() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.revision
}

// Resources returns the resources that have had objects, sorted.
func (s *Server) Resources() []schema.GroupVersionResource {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Keys(s.tables), func(a, b schema.GroupVersionResource) int {
		return strings.Compare(a.String(), b.String())
	})
}

// Lookup returns the resource of that name, such as "foos" or "deployments.apps".
func (s *Server) Lookup(name string) (gvr schema.GroupVersionResource, namespaced, ok bool) {
	want := schema.ParseGroupResource(name)
	return s.find(func(k *kind) bool {
		return k.gvr.Resource == want.Resource && (want.Group == "" || k.gvr.Group == want.Group)
	})
}

// LookupKind returns the resource of a kind.
func (s *Server) LookupKind(gvk schema.GroupVersionKind) (
	gvr schema.GroupVersionResource, namespaced, ok bool,
) {
	return s.find(func(k *kind) bool { return k.gvk == gvk })
}

// find returns the first resource, by group and name, for which is returns true.
func (s *Server) find(is func(*kind) bool) (gvr schema.GroupVersionResource, namespaced, ok bool) {
	for _, k := range s.kinds {
		if is(k) && (!ok || k.gvr.String() < gvr.String()) {
			gvr, namespaced, ok = k.gvr, k.Namespaced, true
		}
	}
	return gvr, namespaced, ok
}
