package apiserver

import (
	"errors"
	"fmt"
	"net/http"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	content, err := s.patched(r, old)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{Object: content}
	if r.Subresource == "scale" {
		object = r.kind.withScale(old, object)
	}
	if r.kind.custom != nil && object.GetKind() == "" {
		return nil, invalidPatch(content, errNoKind)
	}
	if err := checkKind(object.Object, r.kind.gvk); err != nil {
		return nil, err
	}
	if err := r.kind.decode(object); err != nil {
		return nil, invalidPatch(content, err)
	}
	if object.GetName() != r.Name {
		return nil, wrongName(r, object.GetName())
	}
	s.track(r, object, old)
	return s.replace(r, old, object)
}

func invalidPatch(content any, err error) error {
	text, _ := json.Marshal(content)
	return apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{
		field.Invalid(field.NewPath("patch"), string(text), err.Error())})
}

// wrongName refuses an object that is not of the name that the URL has.
func wrongName(r *Request, name string) error {
	if name == "" {
		return apierrors.NewBadRequest("the name of the object (based on URL) was undeterminable")
	}
	return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name"+
		" on the URL (%s)", name, r.Name))
}

// patched returns the content of an object, or of its Scale, after a patch.
func (s *Server) patched(r *Request, old *unstructured.Unstructured) (map[string]any, error) {
	if r.PatchType == types.StrategicMergePatchType {
		return r.strategicallyPatched(r.found(old).Object)
	}
	before := s.encode(r.found(old).Object, "")
	var after []byte
	var err error
	switch r.PatchType {
	case types.JSONPatchType:
		var patch jsonpatch.Patch
		if patch, err = jsonpatch.DecodePatch(r.Patch); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		if after, err = patch.Apply(before); err != nil {
			return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "",
				schema.GroupResource{}, "", err.Error(), 0, false)
		}
	default:
		if after, err = jsonpatch.MergePatch(before, r.Patch); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	}
	var content map[string]any
	if err := json.Unmarshal(after, &content); err != nil {
		return nil, invalidPatch(string(after), err)
	}
	return content, nil
}

func (r *Request) strategicallyPatched(old *unstructured.Unstructured) (map[string]any, error) {
	var patch map[string]any
	if err := json.Unmarshal(r.Patch, &patch); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	goType := r.kind.goType
	if r.Subresource == "scale" {
		goType = scaleType
	}
	meta := strategicpatch.PatchMetaFromStruct{T: goType}
	content, err := strategicpatch.StrategicMergeMapPatchUsingLookupPatchMeta(deepCopy(old.Object),
		patch, meta)
	switch {
	case errors.Is(err, mergepatch.ErrBadJSONDoc), errors.Is(err, mergepatch.ErrBadPatchFormatForPrimitiveList),
		errors.Is(err, mergepatch.ErrBadPatchFormatForRetainKeys),
		errors.Is(err, mergepatch.ErrBadPatchFormatForSetElementOrderList),
		errors.Is(err, mergepatch.ErrUnsupportedStrategicMergePatchFormat):
		return nil, apierrors.NewBadRequest(err.Error())
	case err != nil:
		return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "",
			schema.GroupResource{}, "", err.Error(), 0, false)
	}
	return content, nil
}

// apply merges an applied configuration, or creates an object of it.
func (s *Server) apply(r *Request) (*Response, error) {
	live, old := r.kind.newObject(), s.existing(r)
	if old != nil {
		live = s.tracked(r.kind, old)
	} else if r.Subresource != "" {
		return nil, apierrors.NewNotFound(r.Resource.GroupResource(), r.Name)
	}
	config := &unstructured.Unstructured{Object: deepCopy(r.Body.Object)}
	if r.Subresource == "scale" {
		config = r.kind.scaleConfig(config)
	}
	merged, err := r.kind.managers(r.Subresource).Apply(live.DeepCopy(), config, r.FieldManager,
		r.Force)
	if err != nil {
		return nil, err
	}
	object := merged.(*unstructured.Unstructured)
	if r.kind.goType != nil {
		finish(live.Object, object.Object, r.kind.goType)
	}
	if object.GetName() != r.Name && (old != nil || object.GetName() != "") {
		return nil, wrongName(r, object.GetName())
	}
	if err := r.decode(object); err != nil {
		return nil, err
	}
	if old != nil {
		return s.replace(r, live, object)
	}
	if uid := object.GetUID(); uid != "" {
		return nil, apierrors.NewConflict(r.Resource.GroupResource(), r.Name, fmt.Errorf("uid mismatch:"+
			" the provided object specified uid %s, and no existing object was found", uid))
	}
	object.SetName(r.Name)
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

// scaleConfig returns the applied configuration of an object for that of its Scale.
func (k *kind) scaleConfig(scale *unstructured.Unstructured) *unstructured.Unstructured {
	config := &unstructured.Unstructured{Object: map[string]any{}}
	config.SetGroupVersionKind(k.gvk)
	config.Object["metadata"] = scale.Object["metadata"]
	if replicas, found, _ := nested(scale.Object, "spec.replicas"); found {
		_ = unstructured.SetNestedField(config.Object, replicas, k.scale.replicas...)
	}
	return config
}
