package apiserver

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"
)

// table has the objects of a resource, and all that was written to it.
type table struct {
	objects map[string]*unstructured.Unstructured // by namespace/name, or name
	history []Write
	watches []*Watch
}

// Write is a change of an object. Its objects must not be changed.
type Write struct {
	Revision int64
	Type     watch.EventType
	Old, New *unstructured.Unstructured // Old is nil if Type is Added, and New if it is Deleted

	event   *unstructured.Unstructured // what a watch shows
	manager manager
}

func keyOf(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

func (s *Server) table(k *kind) *table {
	t := s.tables[k.storage]
	if t == nil {
		t = &table{objects: map[string]*unstructured.Unstructured{}}
		s.tables[k.storage] = t
	}
	return t
}

// commit writes an object, and tells the watches. With deleted, object is the last state.
func (s *Server) commit(
	r *Request, old, object *unstructured.Unstructured, deleted bool,
) *unstructured.Unstructured {
	s.revision++
	object = s.stored(r.kind, object)
	object.SetResourceVersion(strconv.FormatInt(s.revision, 10))
	s.remember(object)
	t, key := s.table(r.kind), keyOf(object.GetNamespace(), object.GetName())
	write := Write{s.revision, watch.Modified, old, object, object, managerOf(r)}
	switch {
	case deleted:
		write.Type, write.New = watch.Deleted, nil
		delete(t.objects, key)
	case old == nil:
		write.Type = watch.Added
		t.objects[key] = object
	default:
		t.objects[key] = object
	}
	t.history = append(t.history, write)
	t.watches = slices.DeleteFunc(t.watches, (*Watch).Done)
	for _, w := range slices.Clone(t.watches) {
		w.notify(write)
	}
	return object
}

// at returns the objects of a revision.
func (t *table) at(revision int64) map[string]*unstructured.Unstructured {
	last := len(t.history) - 1
	if last < 0 || t.history[last].Revision <= revision {
		return t.objects
	}
	objects := map[string]*unstructured.Unstructured{}
	for _, write := range t.history {
		if write.Revision > revision {
			break
		}
		key := keyOf(write.event.GetNamespace(), write.event.GetName())
		if objects[key] = write.New; write.New == nil {
			delete(objects, key)
		}
	}
	return objects
}

// sorted returns the objects that a request selects, in order.
func (s *Server) sorted(r *Request, revision int64) (keys []string, objects []*unstructured.Unstructured) {
	at := s.table(r.kind).at(revision)
	for _, key := range slices.Sorted(maps.Keys(at)) {
		if object := s.view(r.kind, at[key]); r.selects(object) {
			keys, objects = append(keys, key), append(objects, object)
		}
	}
	return keys, objects
}

// selects reports whether the request is for this object.
func (r *Request) selects(object *unstructured.Unstructured) bool {
	if r.Namespace != "" && object.GetNamespace() != r.Namespace {
		return false
	}
	if !r.Labels.Empty() && !r.Labels.Matches(labels.Set(object.GetLabels())) {
		return false
	}
	if r.Fields.Empty() {
		return true
	}
	set := fields.Set{"metadata.name": object.GetName(), "metadata.namespace": object.GetNamespace()}
	for _, field := range r.kind.fields {
		if value, found, _ := nested(object.Object, field); found {
			set[field] = fmt.Sprint(value)
		} else {
			set[field] = ""
		}
	}
	return r.Fields.Matches(set)
}

func (s *Server) get(r *Request) (*Response, error) {
	object := s.table(r.kind).objects[keyOf(r.Namespace, r.Name)]
	if object == nil {
		return nil, apierrors.NewNotFound(r.Resource.GroupResource(), r.Name)
	}
	return r.found(s.view(r.kind, object)), nil
}

// found returns the answer that is an object.
func (r *Request) found(object *unstructured.Unstructured) *Response {
	if r.Subresource == "scale" {
		object = r.kind.scaleOf(object)
	}
	return &Response{Code: 200, Object: object}
}

// checkList refuses options that do not go together.
func (s *Server) checkList(r *Request) error {
	o := r.List
	errs := validation.ValidateListOptions(&internalversion.ListOptions{Watch: o.Watch,
		AllowWatchBookmarks: o.AllowWatchBookmarks, ResourceVersion: o.ResourceVersion,
		ResourceVersionMatch: o.ResourceVersionMatch, TimeoutSeconds: o.TimeoutSeconds,
		Limit: o.Limit, Continue: o.Continue, SendInitialEvents: o.SendInitialEvents}, !s.noStreams)
	if len(errs) > 0 {
		kind := schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}
		return apierrors.NewInvalid(kind, "", errs)
	}
	return nil
}

// parseRevision reads a resourceVersion; the empty one is 0.
func (s *Server) parseRevision(r *Request) (int64, error) {
	if r.List.ResourceVersion == "" {
		return 0, nil
	}
	revision, err := strconv.ParseUint(r.List.ResourceVersion, 10, 63)
	if err != nil {
		return 0, apierrors.NewBadRequest("invalid resource version: " + err.Error())
	}
	if int64(revision) > s.revision {
		err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d",
			revision, s.revision), 1)
		err.ErrStatus.Details.Causes = []metav1.StatusCause{{
			Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}
		return int64(revision), err
	}
	return int64(revision), nil
}

// expired returns the error for a revision that Compact has dropped.
func (s *Server) expired(revision int64) error {
	if revision >= s.compacted {
		return nil
	}
	return apierrors.NewResourceExpired(
		fmt.Sprintf("too old resource version: %d (%d)", revision, s.compacted))
}

// continuation is what a continue token says.
type continuation struct {
	Revision int64  `json:"rv"`
	Start    string `json:"start"`
}

func (s *Server) list(r *Request) (*Response, error) {
	if err := s.checkList(r); err != nil {
		return nil, err
	}
	revision, err := s.parseRevision(r)
	if err != nil {
		return nil, err
	}
	from, shown := continuation{}, s.revision
	switch {
	case r.List.Continue != "":
		text, err := base64.RawURLEncoding.DecodeString(r.List.Continue)
		if err == nil {
			err = json.Unmarshal(text, &from)
		}
		if err != nil {
			return nil, apierrors.NewBadRequest("continue key is not valid: " + err.Error())
		}
		if err := s.expired(from.Revision); err != nil {
			return nil, err
		}
		shown = from.Revision
	case r.List.ResourceVersionMatch == metav1.ResourceVersionMatchExact,
		r.List.Limit > 0 && revision > 0 && r.List.ResourceVersionMatch == "":
		if err := s.expired(revision); err != nil {
			return nil, err
		}
		shown = revision
	case r.AsOf > 0:
		shown = max(r.AsOf, revision)
	}
	limit := r.List.Limit
	if r.List.ResourceVersion == "0" {
		limit = 0
	}
	return s.page(r, shown, limit, from.Start), nil
}

// page returns limit objects, if it is not 0, from the key start on.
func (s *Server) page(r *Request, revision, limit int64, start string) *Response {
	keys, objects := s.sorted(r, revision)
	begin, _ := slices.BinarySearch(keys, start)
	keys, objects = keys[begin:], objects[begin:]
	metadata := map[string]any{"resourceVersion": strconv.FormatInt(revision, 10)}
	if limit > 0 && int64(len(objects)) > limit {
		token, _ := json.Marshal(continuation{revision, keys[limit]})
		metadata["continue"] = base64.RawURLEncoding.EncodeToString(token)
		if r.Labels.Empty() && r.Fields.Empty() {
			metadata["remainingItemCount"] = int64(len(objects)) - limit
		}
		objects = objects[:limit]
	}
	return r.listOf(objects, metadata)
}

// listOf returns the answer that is a list.
func (r *Request) listOf(objects []*unstructured.Unstructured, metadata map[string]any) *Response {
	items := make([]any, len(objects))
	for i, object := range objects {
		items[i] = object.Object
	}
	list := map[string]any{"kind": r.kind.names.ListKind, "metadata": metadata, "items": items,
		"apiVersion": r.kind.gvk.GroupVersion().String()}
	return &Response{Code: 200, Object: &unstructured.Unstructured{Object: list}, items: objects}
}
