package apiserver

import (
	"errors"
	"net/http"
	"reflect"
	"slices"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// errMergePatch are the errors of a strategic merge patch that is wrong whatever it is for.
var errMergePatch = []error{mergepatch.ErrBadJSONDoc, mergepatch.ErrBadPatchFormatForPrimitiveList,
	mergepatch.ErrBadPatchFormatForRetainKeys, mergepatch.ErrBadPatchFormatForSetElementOrderList,
	mergepatch.ErrUnsupportedStrategicMergePatchFormat}

// patched returns an object, or what a subresource shows of it, after a patch.
func (s *Server) patched(
	r *Request, old *unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	if old == nil {
		return nil, r.notFound()
	}
	old = r.found(old).Object
	var content map[string]any
	var patch jsonpatch.Patch
	after, err := []byte("null"), error(nil)
	switch r.PatchType {
	case types.StrategicMergePatchType:
		content, err = r.strategicallyPatched(old)
	case types.JSONPatchType:
		if patch, err = jsonpatch.DecodePatch(r.Patch); err == nil {
			after, err = patch.Apply(s.encode(old, ""))
			err = unprocessable(err)
		}
	default:
		after, err = jsonpatch.MergePatch(s.encode(old, ""), r.Patch)
	}
	if err != nil {
		return nil, badRequest(err)
	}
	if content == nil {
		err = json.Unmarshal(after, &content)
	}
	object := &unstructured.Unstructured{Object: content}
	if err == nil && (content == nil || r.mustSayKind() && object.GetKind() == "") {
		err = errNoKind
	}
	if err == nil {
		if err = r.checkKind(content); err != nil {
			return nil, err
		}
		err = r.decode(object)
	}
	if err != nil {
		err = apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{
			field.Invalid(field.NewPath("patch"), string(marshal(content)), err.Error())})
	}
	return object, err
}

func (r *Request) strategicallyPatched(old *unstructured.Unstructured) (map[string]any, error) {
	var patch map[string]any
	if err := json.Unmarshal(r.Patch, &patch); err != nil {
		return nil, err
	}
	meta := strategicpatch.PatchMetaFromStruct{T: r.kind.goType}
	if r.Subresource == "scale" {
		meta.T = reflect.TypeFor[autoscalingv1.Scale]()
	}
	content, err := strategicpatch.StrategicMergeMapPatchUsingLookupPatchMeta(old.DeepCopy().Object,
		patch, meta)
	if err != nil &&
		!slices.ContainsFunc(errMergePatch, func(bad error) bool { return errors.Is(err, bad) }) {
		err = unprocessable(err)
	}
	return content, err
}

func unprocessable(err error) error {
	if err == nil {
		return nil
	}
	return apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "",
		schema.GroupResource{}, "", err.Error(), 0, false)
}

// applied merges an applied configuration. It returns the object with it, and what there was, both
// with managed fields.
func (s *Server) applied(
	r *Request, old *unstructured.Unstructured,
) (object, live *unstructured.Unstructured, err error) {
	base := r.kind.newObject()
	switch {
	case r.Subresource == "scale":
		return nil, nil, refusal(http.StatusNotImplemented, "", "apply to the subresource scale is not"+
			" simulated")
	case old != nil:
		old = s.tracked(r.kind, old)
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
	return object, old, r.decode(object)
}

// newObject returns an object of a kind, with nothing but what each has.
func (k *kind) newObject() *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{}}}
	if k.goType != nil {
		return asObject(k.gvk, reflect.New(k.goType).Interface())
	}
	object.SetGroupVersionKind(k.gvk)
	return object
}
