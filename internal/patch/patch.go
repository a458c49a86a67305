// Package patch changes objects without touching what this program does not know.
//
// A client drops the fields that its version of the API does not have when it reads an object. If
// it sends back all that it has read, as an Update does, it erases those fields. A patch has only
// the difference, and the API server applies that to what it has stored.
package patch

import (
	"context"
	"encoding/json"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
)

// Object is a pointer to an object of the API, such as *appsv1.Deployment.
type Object interface {
	metav1.Object
	runtime.Object
}

// Client is the part of a generated client that Send needs.
type Client[T Object] interface {
	Patch(ctx context.Context, name string, kind types.PatchType, patch []byte,
		options metav1.PatchOptions, subresources ...string) (T, error)
}

// Send changes the stored object to desired, and returns what is stored then. The API server refuses
// that with a conflict if the stored object is no longer the one that was observed.
func Send[T Object](
	ctx context.Context, client Client[T], observed, desired T, manager string,
) (updated T, err error) {
	kind, patch, err := Between(observed, desired)
	if err != nil {
		return updated, err
	}
	return client.Patch(
		ctx, observed.GetName(), kind, patch, metav1.PatchOptions{FieldManager: manager})
}

// Between returns the patch that turns observed into desired. UID and resourceVersion are in it.
//
// A strategic merge patch changes an element of a list, such as a container, and keeps what it does
// not mention. A merge patch replaces a list that differs. It is for custom resources, of which the API
// server knows no other patch, and for lists of which two elements have the same key.
func Between[T Object](observed, desired T) (types.PatchType, []byte, error) {
	observed = observed.DeepCopyObject().(T)
	observed.SetUID("")
	observed.SetResourceVersion("")
	before, err := json.Marshal(observed)
	if err != nil {
		return "", nil, err
	}
	after, err := json.Marshal(desired)
	if err != nil {
		return "", nil, err
	}
	if _, _, err := scheme.Scheme.ObjectKinds(desired); err == nil {
		patch, err := strategicpatch.CreateTwoWayMergePatch(before, after, desired)
		made, _ := strategicpatch.StrategicMergePatch(before, patch, desired)
		if err == nil && jsonpatch.Equal(made, after) {
			return types.StrategicMergePatchType, patch, nil
		} // else two elements of a list have the same key, such as port 80 of TCP and of UDP
	}
	patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(before, after, before)
	return types.MergePatchType, patch, err
}
