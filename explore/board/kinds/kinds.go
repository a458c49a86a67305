// Package kinds lets the API server of explore do with Kubernetes' own kinds what Kubernetes does,
// with Kubernetes' own code: defaults, what a create and an update change and keep, validation,
// and admission that asks for no other object. A blank import turns it on:
//
//	import _ "example.com/sample-controller/explore/board/kinds"
//
// It is in the module explore/board, because it needs k8s.io/kubernetes, which is no library: it
// compiles for minutes at first, and its versions must be replaced. In the go.mod of the program:
//
//	go mod edit -require=example.com/sample-controller/explore/board@v0.0.0
//	sed -n '/^replace (/,/^)/p' PATH/explore/board/go.mod >>go.mod
//	go mod tidy
//
// PATH is that of this repository. While it is not published, explore and explore/board themselves
// are replaced, too.
//
// # Differences
//
// The test of this package writes a minimal, a full and an invalid object of each of the 61 kinds
// that a real API server serves by default to it and to the server in memory, and compares what is
// stored and answered. Of a failure, that is the code, the reason, and the fields and reasons of the
// causes. The rest is the same, but for this:
//
//   - All requests are those of the user system:admin, as CertificateSigningRequests say.
//   - A real API server writes the status of FlowSchemas itself.
//   - Who applies the status of a few kinds, such as ResourceClaims, manages the metadata, too.
package kinds

import (
	"cmp"
	"context"
	"maps"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/core"

	"example.com/sample-controller/explore/apiserver"
)

func init() { apiserver.BuiltinKinds = load() }

// kinds are the stores of Kubernetes, by paths such as apps/v1/deployments/status. Nothing is stored
// in them.
type kinds map[string]rest.Storage

func path(gvr schema.GroupVersionResource, subresource string) string {
	return strings.TrimSuffix(gvr.GroupVersion().String()+"/"+gvr.Resource+"/"+subresource, "/")
}

// store returns that of a subresource, or of the resource if that has none of its own.
func (k kinds) store(gvr schema.GroupVersionResource, subresource string) *genericregistry.Store {
	if store := storeOf(reflect.ValueOf(k[path(gvr, subresource)])); store != nil {
		return store
	}
	return storeOf(reflect.ValueOf(k[path(gvr, "")]))
}

// storeOf finds the store in what Kubernetes wraps around it, or returns nil.
func storeOf(v reflect.Value) *genericregistry.Store {
	switch {
	case v.Kind() == reflect.Pointer && v.Type() == reflect.TypeFor[*genericregistry.Store]():
		return (*genericregistry.Store)(v.UnsafePointer()) // of a field that is not exported
	case v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer:
		return storeOf(v.Elem())
	case v.Kind() == reflect.Struct && v.NumField() > 0:
		return storeOf(v.Field(0))
	}
	return nil
}

// internal returns an object, with defaults, in the type that Kubernetes works with.
func internal(object *unstructured.Unstructured) (runtime.Object, error) {
	typed, err := legacyscheme.Scheme.New(object.GroupVersionKind())
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed)
	}
	if err != nil {
		return nil, err
	}
	legacyscheme.Scheme.Default(typed)
	return legacyscheme.Scheme.UnsafeConvertToVersion(typed, runtime.InternalGroupVersioner)
}

// change lets do change an object in that type. Then the object is as it is read from the storage.
func change(object *unstructured.Unstructured, do func(runtime.Object) error) error {
	typed, err := internal(object)
	if err == nil {
		err = do(typed)
	}
	if err != nil {
		return err
	}
	gv := object.GroupVersionKind().GroupVersion()
	typed = must(legacyscheme.Scheme.UnsafeConvertToVersion(typed, gv))
	typed = must(runtime.Decode(stored, must(runtime.Encode(stored, typed))))
	legacyscheme.Scheme.Default(typed)
	clear(object.Object)
	maps.Copy(object.Object, must(runtime.DefaultUnstructuredConverter.ToUnstructured(typed)))
	return nil
}

// stored is the form in which objects are stored.
var stored = protobuf.NewSerializer(legacyscheme.Scheme, legacyscheme.Scheme)

// Default implements apiserver.Kinds.
func (k kinds) Default(object *unstructured.Unstructured) error {
	return change(object, func(runtime.Object) error { return nil })
}

// Finish implements apiserver.Kinds.
func (k kinds) Finish(r *apiserver.Request, object, old *unstructured.Unstructured) error {
	if r.Resource == services {
		k = serviceStores(cmp.Or(old, object).GetUID())
	}
	gvk, store := object.GroupVersionKind(), k.store(r.Resource, r.Subresource)
	ctx := request.WithUser(request.WithNamespace(context.Background(), r.Namespace), admin)
	ctx = request.WithRequestInfo(ctx, &request.RequestInfo{APIGroup: gvk.Group, APIVersion: gvk.Version,
		Subresource: r.Subresource})
	return change(object, func(typed runtime.Object) error {
		if old == nil {
			err := admit(ctx, admission.NewAttributesRecord(typed, nil, gvk, r.Namespace, r.Name, r.Resource, "",
				admission.Create, &metav1.CreateOptions{}, false, admin))
			if err == nil && store.BeginCreate != nil {
				_, err = store.BeginCreate(ctx, typed, &metav1.CreateOptions{})
			}
			if err != nil {
				return err
			}
			return rest.BeforeCreate(store.CreateStrategy, ctx, typed)
		}
		before, err := internal(old)
		if err == nil && store.BeginUpdate != nil {
			_, err = store.BeginUpdate(ctx, typed, before, &metav1.UpdateOptions{})
		}
		if err != nil {
			return err
		}
		return rest.BeforeUpdate(store.UpdateStrategy, ctx, typed, before)
	})
}

var (
	services = corev1.SchemeGroupVersion.WithResource("services")
	admin    = &user.DefaultInfo{Name: "system:admin",
		Groups: []string{user.SystemPrivilegedGroup, user.AllAuthenticated}}
)

// admit does what admission does that asks for no other object.
func admit(ctx context.Context, attributes admission.Attributes) error {
	for _, plugin := range plugins {
		if err := plugin.Admit(ctx, attributes, nil); err != nil {
			return err
		}
	}
	if pod, ok := attributes.GetObject().(*core.Pod); ok { // of the default ServiceAccount, without a PriorityClass
		pod.Spec.ServiceAccountName = cmp.Or(pod.Spec.ServiceAccountName, "default")
		pod.Spec.DeprecatedServiceAccount = pod.Spec.ServiceAccountName
		pod.Spec.Priority = cmp.Or(pod.Spec.Priority, new(int32(0)))
		pod.Spec.PreemptionPolicy = cmp.Or(pod.Spec.PreemptionPolicy, new(core.PreemptLowerPriority))
	}
	return nil
}
