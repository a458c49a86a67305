package apiserver

import (
	"bytes"
	"reflect"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured/unstructuredscheme"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	smdschema "sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"k8s.io/apiextensions-apiserver/pkg/generated/openapi"
)

// The managed fields of an object cost more than all else of a write. So an object has them from
// its first apply on: then they are made of all writes that there were.

// builtinConverter knows the built-in kinds. As the schema of a server of tomorrow does, it also
// lets fields be owned that this version does not have.
var builtinConverter = sync.OnceValue(func() managedfields.TypeConverter {
	namespace := &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}}
	value, err := applyconfigurations.NewTypeConverter(scheme.Scheme).ObjectToTyped(namespace)
	if err != nil {
		panic(err) // only without that kind
	}
	parser := &typed.Parser{Schema: smdschema.Schema{Types: slices.Clone(value.Schema().Types)}}
	for i, definition := range parser.Schema.Types {
		if fields := definition.Map; fields != nil && fields.ElementType == (smdschema.TypeRef{}) {
			parser.Schema.Types[i].Map = &smdschema.Map{Fields: fields.Fields, Unions: fields.Unions,
				ElementType:         smdschema.TypeRef{NamedType: new("__untyped_deduced_")},
				ElementRelationship: fields.ElementRelationship}
		}
	}
	return managedfields.NewSchemeTypeConverter(scheme.Scheme, parser)
})

// manager returns what manages the fields of a kind in writes of a subresource. It passes over those
// that the subresource cannot change.
func (k *kind) manager(subresource string) *managedfields.FieldManager {
	var fixed []fieldpath.Path
	switch {
	case subresource != "status" && k.has("status"):
		fixed = []fieldpath.Path{fieldpath.MakePathOrDie("status")}
	case subresource == "status":
		fixed = []fieldpath.Path{fieldpath.MakePathOrDie("spec")}
		if k.custom != nil {
			fixed = append(fixed, fieldpath.MakePathOrDie("metadata"))
		} else if k.is("deployments") {
			fixed = append(fixed, fieldpath.MakePathOrDie("metadata", "labels"))
		}
	}
	gv, create := k.gvk.GroupVersion(), managedfields.NewDefaultFieldManager
	filters := fieldpath.NewExcludeFilterSetMap(map[fieldpath.APIVersion]*fieldpath.Set{
		fieldpath.APIVersion(gv.String()): fieldpath.NewSet(fixed...)})
	if k.custom != nil {
		create = managedfields.NewDefaultCRDFieldManager
	}
	made, err := create(k.converter(), oneVersion{}, unstructuredscheme.NewUnstructuredDefaulter(),
		unstructuredscheme.NewUnstructuredCreator(), k.gvk, gv, subresource, filters)
	if err != nil {
		panic(err) // only without a converter
	}
	return made
}

// oneVersion stands for the conversions of objects that exist in one version.
type oneVersion struct{ runtime.ObjectConvertor } // nil: nothing else is called

// ConvertToVersion implements runtime.ObjectConvertor.
func (oneVersion) ConvertToVersion(
	object runtime.Object, _ runtime.GroupVersioner,
) (runtime.Object, error) {
	return object, nil
}

// customConverter makes a converter of a schema.
func customConverter(k *kind) managedfields.TypeConverter {
	models, folder := map[string]*spec.Schema{}, "#/definitions/"
	reference := func(name string) spec.Ref { return spec.MustCreateRef(folder + name) }
	for name, definition := range openapi.GetOpenAPIDefinitions(reference) {
		models[name] = &definition.Schema
	}
	object := k.custom.schema.ToKubeOpenAPI()
	if object.Properties == nil {
		object.Properties = map[string]spec.Schema{}
	}
	object.Properties["apiVersion"] = *spec.StringProperty()
	object.Properties["kind"] = *spec.StringProperty()
	object.Properties["metadata"] = *spec.RefProperty(folder + metav1.ObjectMeta{}.OpenAPIModelName())
	object.AddExtension("x-kubernetes-group-version-kind", []any{map[any]any{
		"group": k.gvk.Group, "version": k.gvk.Version, "kind": k.gvk.Kind}})
	models["object"] = object
	made, err := managedfields.NewTypeConverter(models, k.custom.keepsUnknowns)
	if err != nil {
		panic(err) // of a schema that was accepted
	}
	return made
}

// track updates the managed fields of an object, if it has some.
func (s *Server) track(r *Request, object, old *unstructured.Unstructured) {
	if metadataOf(old)["managedFields"] == nil {
		delete(metadataOf(object), "managedFields")
		return
	}
	*object = *r.kind.manage(old, object, r.Options.FieldManager, r.Subresource)
}

// manage returns an object with the managed fields after a write. As in a real API server, a Scale
// has none if nobody owns the replicas yet.
func (k *kind) manage(
	live, object *unstructured.Unstructured, manager, subresource string,
) *unstructured.Unstructured {
	if subresource == "scale" && !slices.ContainsFunc(live.GetManagedFields(), k.ownsReplicas) {
		object.SetManagedFields(live.GetManagedFields())
		return object
	}
	return k.manager(subresource).UpdateNoErrors(live, object, manager).(*unstructured.Unstructured)
}

// ownsReplicas reports whether an entry has the field that a Scale shows.
func (k *kind) ownsReplicas(entry metav1.ManagedFieldsEntry) bool {
	set := &fieldpath.Set{}
	err := set.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes()))
	var path fieldpath.Path
	for _, name := range split(k.scale.SpecReplicasPath) {
		path = append(path, fieldpath.MakePathOrDie(name)...)
	}
	return err == nil && set.Has(path)
}

// tracked returns an object with its managed fields.
func (s *Server) tracked(k *kind, old *unstructured.Unstructured) *unstructured.Unstructured {
	if metadataOf(old)["managedFields"] != nil {
		return old
	}
	live := k.newObject()
	for _, write := range s.table(k).history {
		if write.New == nil || write.New.GetUID() != old.GetUID() {
			continue
		}
		object := k.view(write.New).DeepCopy()
		if k.is("namespaces") {
			delete(object.Object, "spec") // the finalizers are the server's
		}
		if write.manager == "" {
			object.SetManagedFields(live.GetManagedFields())
			live = object
			continue
		}
		live = k.manage(live, object, write.manager, write.subresource)
	}
	object := old.DeepCopy()
	object.SetManagedFields(live.GetManagedFields())
	return object
}

// sameObject reports whether two objects differ in nothing but times of managed fields.
func sameObject(a, b *unstructured.Unstructured) bool {
	return reflect.DeepEqual(a.Object, b.Object) ||
		len(a.GetManagedFields()) > 0 && reflect.DeepEqual(withoutTimes(a), withoutTimes(b))
}

func withoutTimes(object *unstructured.Unstructured) map[string]any {
	object = object.DeepCopy()
	entries := object.GetManagedFields()
	for i := range entries {
		entries[i].Time = nil
	}
	object.SetManagedFields(entries)
	return object.Object
}
