package apiserver

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// The managed fields of an object cost more than all else of a write. So an object has them from
// its first apply on: then they are made of all writes that there were.

type (
	fieldManager  = managedfields.FieldManager
	typeConverter = managedfields.TypeConverter
)

// manager tells of a write what managed fields say.
type manager struct {
	name, subresource string
	time              metav1.Time
}

func managerOf(r *Request) manager {
	if strings.HasPrefix(r.Verb, "delete") {
		return manager{}
	}
	return manager{r.FieldManager, r.Subresource, metav1.NewTime(time.Now().Truncate(time.Second))}
}

var scaleType = reflect.TypeFor[autoscalingv1.Scale]()

var builtinConverter = sync.OnceValue(func() typeConverter {
	return applyconfigurations.NewTypeConverter(scheme.Scheme)
})

// knownFields is a converter that leaves out what a Go type does not have.
type knownFields struct {
	typeConverter
	goType reflect.Type
}

func (c knownFields) ObjectToTyped(
	object runtime.Object, options ...typed.ValidationOptions,
) (*typed.TypedValue, error) {
	content := object.(*unstructured.Unstructured).Object
	known := &unstructured.Unstructured{Object: known(content, c.goType).(map[string]any)}
	return c.typeConverter.ObjectToTyped(known, options...)
}

// managersOf returns what makes a kind's field managers, one for each subresource.
func managersOf(k *kind, converter func() (typeConverter, error)) func(string) *fieldManager {
	lazily := map[string]func() *fieldManager{}
	for _, subresource := range []string{"", "status", "scale", "finalize"} {
		lazily[subresource] = sync.OnceValue(func() *fieldManager {
			types, err := converter()
			if err != nil {
				panic(err) // of a schema that was accepted
			}
			return newFieldManager(k, subresource, types)
		})
	}
	return func(subresource string) *fieldManager { return lazily[subresource]() }
}

func newFieldManager(k *kind, subresource string, types typeConverter) *fieldManager {
	reset := fieldpath.NewSet()
	switch {
	case subresource == "status" && k.custom != nil:
		reset = fieldpath.NewSet(fieldpath.MakePathOrDie("metadata"), fieldpath.MakePathOrDie("spec"))
	case subresource == "status":
		reset = fieldpath.NewSet(fieldpath.MakePathOrDie("spec"))
		if k.is("deployments") {
			reset.Insert(fieldpath.MakePathOrDie("metadata", "labels"))
		}
	case k.status:
		reset = fieldpath.NewSet(fieldpath.MakePathOrDie("status"))
	}
	gv := k.gvk.GroupVersion()
	filters := fieldpath.NewExcludeFilterSetMap(map[fieldpath.APIVersion]*fieldpath.Set{
		fieldpath.APIVersion(gv.String()): reset})
	create := managedfields.NewDefaultFieldManager
	if k.custom != nil {
		create = managedfields.NewDefaultCRDFieldManager
	}
	made, err := create(types, oneVersion{k}, oneVersion{k}, oneVersion{k}, k.gvk, gv, subresource, filters)
	if err != nil {
		panic(err) // only without a converter
	}
	return made
}

// oneVersion stands for the conversions, the defaults and the constructors of objects that exist in
// one version, without defaults.
type oneVersion struct{ kind *kind }

func (oneVersion) Convert(_, _, _ any) error { return nil }

func (oneVersion) ConvertToVersion(
	object runtime.Object, _ runtime.GroupVersioner,
) (runtime.Object, error) {
	return object, nil
}

func (oneVersion) ConvertFieldLabel(
	_ schema.GroupVersionKind, label, value string,
) (string, string, error) {
	return label, value, nil
}

func (oneVersion) Default(runtime.Object) {}

func (v oneVersion) New(schema.GroupVersionKind) (runtime.Object, error) {
	return v.kind.newObject(), nil
}

// customConverter makes a converter of a schema.
func customConverter(k *kind) (typeConverter, error) {
	object := k.custom.schema.ToKubeOpenAPI()
	if object.Properties == nil {
		object.Properties = map[string]spec.Schema{}
	}
	names := *spec.MapProperty(spec.StringProperty())
	owners := *spec.ArrayProperty(spec.MapProperty(nil))
	owners.AddExtension("x-kubernetes-list-type", "map")
	owners.AddExtension("x-kubernetes-list-map-keys", []any{"uid"})
	owners.Items.Schema.Properties = map[string]spec.Schema{}
	for _, name := range []string{"apiVersion", "kind", "name", "uid"} {
		property := spec.StringProperty()
		property.Default = ""
		owners.Items.Schema.Properties[name] = *property
	}
	for _, name := range []string{"controller", "blockOwnerDeletion"} {
		owners.Items.Schema.Properties[name] = *spec.BooleanProperty()
	}
	owners.Items.Schema.AdditionalProperties = nil
	owners.Items.Schema.AddExtension("x-kubernetes-map-type", "atomic")
	finalizers := *spec.ArrayProperty(spec.StringProperty())
	finalizers.AddExtension("x-kubernetes-list-type", "set")
	object.Properties["apiVersion"], object.Properties["kind"] = *spec.StringProperty(), *spec.StringProperty()
	metadata := spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"},
		Properties: map[string]spec.Schema{"labels": names, "annotations": names,
			"finalizers": finalizers, "ownerReferences": owners,
			"managedFields": *spec.ArrayProperty(spec.MapProperty(nil))}}}
	for _, name := range []string{"name", "namespace", "generateName", "uid", "resourceVersion",
		"creationTimestamp", "deletionTimestamp", "selfLink"} {
		metadata.Properties[name] = *spec.StringProperty()
	}
	for _, name := range []string{"generation", "deletionGracePeriodSeconds"} {
		metadata.Properties[name] = *spec.Int64Property()
	}
	object.Properties["metadata"] = metadata
	gvk := k.gvk
	object.AddExtension("x-kubernetes-group-version-kind", []any{map[any]any{
		"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind}})
	return managedfields.NewTypeConverter(map[string]*spec.Schema{"object": object},
		k.custom.keepsUnknowns)
}

// track updates the managed fields of an object, if it has some.
func (s *Server) track(r *Request, object, old *unstructured.Unstructured) {
	if old.Object["metadata"].(map[string]any)["managedFields"] == nil {
		unstructured.RemoveNestedField(object.Object, "metadata", "managedFields")
		return
	}
	*object = *r.kind.manage(old, object, managerOf(r))
}

// manage returns an object with the managed fields after a write. As in a real API server, a Scale
// has none if nobody owns the replicas yet.
func (k *kind) manage(live, object *unstructured.Unstructured, m manager) *unstructured.Unstructured {
	if m.subresource == "scale" && !slices.ContainsFunc(live.GetManagedFields(), k.ownsReplicas) {
		object.SetManagedFields(live.GetManagedFields())
		return object
	}
	return k.managers(m.subresource).UpdateNoErrors(live, object, m.name).(*unstructured.Unstructured)
}

// ownsReplicas reports whether an entry has the field that a Scale shows.
func (k *kind) ownsReplicas(entry metav1.ManagedFieldsEntry) bool {
	set := &fieldpath.Set{}
	err := set.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes()))
	parts := make([]any, len(k.scale.replicas))
	for i, name := range k.scale.replicas {
		parts[i] = name
	}
	return err == nil && set.Has(fieldpath.MakePathOrDie(parts...))
}

// tracked returns an object with its managed fields.
func (s *Server) tracked(k *kind, old *unstructured.Unstructured) *unstructured.Unstructured {
	if old.Object["metadata"].(map[string]any)["managedFields"] != nil {
		return old
	}
	live := k.newObject()
	for _, write := range s.table(k).history {
		if write.New == nil || write.New.GetUID() != old.GetUID() {
			continue
		}
		object := &unstructured.Unstructured{Object: deepCopy(s.view(k, write.New).Object)}
		if k.is("namespaces") {
			delete(object.Object, "spec") // the finalizers are the server's
		}
		if write.manager.name == "" { // of a delete
			object.SetManagedFields(live.GetManagedFields())
			live = object
			continue
		}
		live = withTime(k.manage(live, object, write.manager), live.GetManagedFields(), write.manager)
	}
	object := &unstructured.Unstructured{Object: deepCopy(old.Object)}
	object.SetManagedFields(live.GetManagedFields())
	return object
}

// withTime gives the entry of a manager the time of its write.
func withTime(
	object *unstructured.Unstructured, before []metav1.ManagedFieldsEntry, m manager,
) *unstructured.Unstructured {
	entries := object.GetManagedFields()
	for i, entry := range entries {
		changed := true
		for _, old := range before {
			changed = changed && !reflect.DeepEqual(old, entry)
		}
		if changed && entry.Manager == m.name && entry.Subresource == m.subresource {
			entries[i].Time = &m.time
		}
	}
	object.SetManagedFields(entries)
	return object
}

// sameManaged reports whether two objects with managed fields differ in the times of these only.
func sameManaged(a, b *unstructured.Unstructured) bool {
	if len(a.GetManagedFields()) == 0 || len(b.GetManagedFields()) == 0 {
		return false
	}
	withoutTimes := func(object *unstructured.Unstructured) map[string]any {
		content := deepCopy(object.Object)
		fields, _, _ := unstructured.NestedSlice(content, "metadata", "managedFields")
		for _, entry := range fields {
			delete(entry.(map[string]any), "time")
		}
		_ = unstructured.SetNestedSlice(content, fields, "metadata", "managedFields")
		return content
	}
	return reflect.DeepEqual(withoutTimes(a), withoutTimes(b))
}
