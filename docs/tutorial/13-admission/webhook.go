package main

import (
	"context"
	"encoding/json"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	informers "example.com/sample-controller/pkg/generated/informers/externalversions/samplecontroller/v1alpha1"
)

const deploymentNameIndex = "deploymentName"

var fooKind = schema.GroupKind{Group: v1alpha1.GroupName, Kind: "Foo"}

// validator compares a Foo with the other Foos of its namespace, as the cache shows them.
type validator struct {
	foosByDeployment cache.TypedIndexer[*v1alpha1.Foo]
}

// newValidator returns a validator that reads from foos. The informer must not be started yet.
func newValidator(foos informers.TypedFooInformer) (*validator, error) {
	err := foos.TypedInformer().AddTypedIndexers(informers.FooIndexers{
		deploymentNameIndex: func(foo *v1alpha1.Foo) ([]string, error) {
			return []string{cache.NewObjectName(foo.Namespace, foo.Spec.DeploymentName).String()}, nil
		},
	})
	return &validator{foosByDeployment: foos.TypedInformer().GetTypedIndexer()}, err
}

// admit decides on a Foo that is created, or whose Deployment gets another name. It lets all other
// changes pass: a Foo that has somebody else's name can still be labeled, scaled and let go.
func (v *validator) admit(
	ctx context.Context, request *admissionv1.AdmissionRequest,
) *admissionv1.AdmissionResponse {
	foo, old := &v1alpha1.Foo{}, &v1alpha1.Foo{}
	err := json.Unmarshal(request.Object.Raw, foo)
	if err == nil && request.Operation == admissionv1.Update {
		err = json.Unmarshal(request.OldObject.Raw, old)
	}
	if err != nil {
		return refuse(apierrors.NewBadRequest(fmt.Sprintf("reading the Foo: %v", err)))
	}
	response := &admissionv1.AdmissionResponse{Allowed: true}
	if old.Spec.DeploymentName != foo.Spec.DeploymentName {
		response = v.compare(request.Namespace, foo)
	}
	klog.FromContext(ctx).V(2).Info("Answered", "operation", request.Operation,
		"foo", klog.KRef(request.Namespace, foo.Name), "deploymentName", foo.Spec.DeploymentName,
		"user", request.UserInfo.Username, "allowed", response.Allowed)
	return response
}

// compare refuses foo if the cache shows another Foo of its deploymentName. If that one is being
// deleted, the user is only warned: the controller waits until the name is free.
func (v *validator) compare(namespace string, foo *v1alpha1.Foo) *admissionv1.AdmissionResponse {
	name := foo.Spec.DeploymentName
	others, err := v.foosByDeployment.ByTypedIndex(
		deploymentNameIndex, cache.NewObjectName(namespace, name).String())
	if err != nil {
		return refuse(apierrors.NewInternalError(err)) // there is no such index
	}
	response := &admissionv1.AdmissionResponse{Allowed: true}
	for _, other := range others {
		switch {
		case other.Name == foo.Name:
		case other.DeletionTimestamp != nil:
			response.Warnings = append(response.Warnings, fmt.Sprintf("Deployment %q is that of Foo %q, "+
				"which is being deleted; this Foo waits for it", name, other.Name))
		default:
			return refuse(apierrors.NewInvalid(fooKind, foo.Name, field.ErrorList{
				field.Invalid(field.NewPath("spec", "deploymentName"), name, fmt.Sprintf(
					"is the Deployment of Foo %q: choose another name, or delete that Foo", other.Name)),
			}))
		}
	}
	return response
}

// refuse returns a response that gives the user err.
func refuse(err *apierrors.StatusError) *admissionv1.AdmissionResponse {
	return &admissionv1.AdmissionResponse{Result: &err.ErrStatus}
}
