package apiserver

import (
	"errors"
	"net/http"
	"reflect"
	"slices"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func (s *Server) patch(r *Request) (*Response, error) {
	if r.PatchType == types.ApplyYAMLPatchType {
		return s.apply(r)
	}
	old := s.existing(r)
	if old == nil {
		return nil, apierrors.NewNotFound(r.Resource.GroupResource(), r.Name)
	}
	object, err := s.patched(r, r.found(old).Object)
	if err != nil {
		return nil, err
	}
	if r.Subresource == "scale" {
		object = r.kind.withScale(old, object)
	}
	if r.kind.custom != nil && object.GetKind() == "" {
		return nil, invalidPatch(object.Object, errNoKind)
	}
	if err := checkKind(object.Object, r.kind.gvk); err != nil {
		return nil, err
	}
	if err := r.kind.decode(object); err != nil {
		return nil, invalidPatch(object.Object, err)
	}
	if err := r.checkName(object); err != nil {
		return nil, err
	}
	s.track(r, object, old)
	return s.replace(r, old, object)
}

func invalidPatch(content any, err error) error {
	return apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{
		field.Invalid(field.NewPath("patch"), string(marshal(content)), err.Error())})
}

// errMergePatch are the errors of a strategic merge patch that is wrong whatever it is for.
var errMergePatch = []error{mergepatch.ErrBadJSONDoc, mergepatch.ErrBadPatchFormatForPrimitiveList,
	mergepatch.ErrBadPatchFormatForRetainKeys, mergepatch.ErrBadPatchFormatForSetElementOrderList,
	mergepatch.ErrUnsupportedStrategicMergePatchFormat}

// patched returns an object after a patch.
func (s *Server) patched(
	r *Request, old *unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	var after []byte
	content, err := map[string]any(nil), error(nil)
	switch r.PatchType {
	case types.StrategicMergePatchType:
		content, err = r.strategicallyPatched(old)
	case types.JSONPatchType:
		var patch jsonpatch.Patch
		if patch, err = jsonpatch.DecodePatch(r.Patch); err == nil {
			if after, err = patch.Apply(s.encode(old, "")); err != nil {
				err = unprocessable(err)
			}
		}
	default:
		after, err = jsonpatch.MergePatch(s.encode(old, ""), r.Patch)
	}
	if err == nil && after != nil {
		if err := json.Unmarshal(after, &content); err != nil {
			return nil, invalidPatch(string(after), err)
		}
	}
	err = withStatus(err, http.StatusBadRequest, metav1.StatusReasonBadRequest)
	return &unstructured.Unstructured{Object: content}, err
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
	return apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "",
		schema.GroupResource{}, "", err.Error(), 0, false)
}

// apply merges an applied configuration, or creates an object of it.
func (s *Server) apply(r *Request) (*Response, error) {
	if r.Subresource == "scale" {
		return nil, refusal(http.StatusNotImplemented, "", "apply to the subresource scale is not simulated")
	}
	live, old := r.kind.newObject(), s.existing(r)
	if old != nil {
		live = s.tracked(r.kind, old)
	} else if r.Subresource != "" {
		return nil, apierrors.NewNotFound(r.Resource.GroupResource(), r.Name)
	}
	merged, err := r.kind.manager(r.Subresource).Apply(live.DeepCopy(), r.Body.DeepCopy(),
		r.FieldManager, r.Force)
	if err != nil {
		return nil, err
	}
	object := merged.(*unstructured.Unstructured)
	if old == nil && object.GetName() == "" {
		object.SetName(r.Name)
	}
	if err := r.checkName(object); err != nil {
		return nil, err
	}
	if err := r.kind.decode(object); err != nil {
		return nil, err
	}
	if old != nil {
		return s.replace(r, live, object)
	}
	if uid := object.GetUID(); uid != "" {
		return nil, r.conflict(uid, "")
	}
	return s.createObject(r, object)
}

// newObject returns an object of a kind, with nothing but what each has.
func (k *kind) newObject() *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{}}}
	if k.goType != nil {
		object.Object, _ = throughType(object.Object, k.goType)
	}
	object.SetGroupVersionKind(k.gvk)
	return object
}
