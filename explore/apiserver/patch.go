package apiserver

import (
	"errors"
	"net/http"
	"sync"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured/unstructuredscheme"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"k8s.io/apiextensions-apiserver/pkg/generated/openapi"
)

// patched returns an object after a patch.
func (s *Server) patched(
	r *Request, old *unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	if old == nil {
		return nil, r.notFound()
	}
	after, err := r.patch(s.encode(old, ""))
	if err != nil {
		return nil, badRequest(err)
	}
	object := &unstructured.Unstructured{}
	if err = json.Unmarshal(after, &object.Object); err == nil {
		err = r.checkKind(object.Object)
	}
	if err == nil {
		err = r.decode(object)
	}
	if status := apierrors.APIStatus(nil); err != nil && !errors.As(err, &status) {
		err = apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{
			field.Invalid(field.NewPath("patch"), string(marshal(object.Object)), err.Error())})
	}
	return object, err
}

// patch returns what the patch makes of an object, in JSON.
func (r *Request) patch(before []byte) (after []byte, err error) {
	switch r.PatchType {
	case types.StrategicMergePatchType:
		meta := strategicpatch.PatchMetaFromStruct{T: r.kind.goType}
		after, err = strategicpatch.StrategicMergePatchUsingLookupPatchMeta(before, r.Patch, meta)
		return after, withStatus(err, http.StatusInternalServerError, "")
	case types.JSONPatchType:
		patch, err := jsonpatch.DecodePatch(r.Patch)
		if err != nil {
			return nil, err
		}
		if after, err = patch.Apply(before); err != nil {
			err = apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "",
				schema.GroupResource{}, "", err.Error(), 0, false)
		}
		return after, err
	}
	return jsonpatch.MergePatch(before, r.Patch)
}

// applied merges an applied configuration. It returns the object with it, and what there was, both
// with managed fields.
func (r *Request) applied(
	old *unstructured.Unstructured,
) (object, live *unstructured.Unstructured, err error) {
	base := r.kind.newObject()
	switch {
	case old != nil:
		old = r.kind.tracked(old)
		base = old.DeepCopy()
	case r.Subresource != "":
		return nil, nil, r.notFound()
	}
	if r.malformed != nil {
		return nil, nil, badRequest(r.malformed)
	}
	merged, err := r.kind.manager(r.Subresource).Apply(base, r.Body.DeepCopy(),
		r.Options.FieldManager, r.Options.Force != nil && *r.Options.Force)
	if err != nil {
		return nil, nil, err
	}
	object = merged.(*unstructured.Unstructured)
	if old == nil && object.GetName() == "" {
		object.SetName(r.Name)
	}
	return object, old, badRequest(r.decode(object))
}

// builtinConverter knows the fields of the built-in kinds. As in a real API server, an apply that has
// another one fails.
var builtinConverter = sync.OnceValue(func() managedfields.TypeConverter {
	return applyconfigurations.NewTypeConverter(scheme.Scheme)
})

// manager returns what manages the fields of a kind in writes of a subresource. It passes over
// those that the subresource cannot change.
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
	// It fails only without a converter.
	return must(create(k.converter(), oneVersion{}, unstructuredscheme.NewUnstructuredDefaulter(),
		unstructuredscheme.NewUnstructuredCreator(), k.gvk, gv, subresource, filters))
}

// oneVersion stands for the conversions of objects that exist in one version.
type oneVersion struct {
	runtime.ObjectConvertor // nil: nothing else is called
}

// ConvertToVersion implements runtime.ObjectConvertor.
func (oneVersion) ConvertToVersion(
	object runtime.Object, _ runtime.GroupVersioner,
) (runtime.Object, error) {
	return object, nil
}

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
	return must(managedfields.NewTypeConverter(models, false)) // of a schema that was accepted
}

// track updates the managed fields of an object. They cost more than all else of a write, so an
// object has none before its first apply.
func (r *Request) track(object, old *unstructured.Unstructured) {
	if metadataOf(old)["managedFields"] == nil {
		delete(metadataOf(object), "managedFields")
		return
	}
	manager := r.kind.manager(r.Subresource)
	*object = *manager.UpdateNoErrors(old, object, r.Options.FieldManager).(*unstructured.Unstructured)
}

// tracked returns a copy of an object with managed fields. If it had none, before-first-apply has
// all.
func (k *kind) tracked(old *unstructured.Unstructured) *unstructured.Unstructured {
	result := old.DeepCopy()
	for _, part := range []string{"", "status"} {
		if metadataOf(old)["managedFields"] != nil || part != "" && !k.has(part) {
			break
		}
		live, object := k.newObject(), old.DeepCopy()
		if k.is("namespaces") {
			delete(object.Object, "spec") // the finalizers are the server's
		}
		live.SetManagedFields(result.GetManagedFields())
		object.SetManagedFields(result.GetManagedFields())
		updated := k.manager(part).UpdateNoErrors(live, object, "before-first-apply")
		result.SetManagedFields(updated.(*unstructured.Unstructured).GetManagedFields())
	}
	return result
}
