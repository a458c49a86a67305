package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"example.com/sample-controller/docs/tutorial/14-versions/pkg/apis/samplecontroller/v1beta1"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// convert returns a Foo, in JSON, as a Foo of apiVersion. It moves one field, and leaves everything
// else as it is. The Go types would not do: they write a field that is absent as "" or 0.
func convert(object []byte, apiVersion string) (runtime.Object, error) {
	foo := &unstructured.Unstructured{}
	if err := foo.UnmarshalJSON(object); err != nil {
		return nil, err
	}
	var err error
	alpha, beta := v1alpha1.GroupVersion.String(), v1beta1.GroupVersion.String()
	switch from := foo.GetAPIVersion(); {
	case foo.GetKind() == fooKind.Kind && from == alpha && apiVersion == beta:
		err = toV1beta1(foo.Object)
	case foo.GetKind() == fooKind.Kind && from == beta && apiVersion == alpha:
		err = toV1alpha1(foo.Object)
	default:
		err = fmt.Errorf("no conversion of a %s from %s to %s", foo.GetKind(), from, apiVersion)
	}
	foo.SetAPIVersion(apiVersion)
	return foo, err
}

// toV1beta1 moves spec.deploymentName to spec.deployment.name.
func toV1beta1(foo map[string]any) error {
	name, found, err := unstructured.NestedFieldNoCopy(foo, "spec", "deploymentName")
	if !found || err != nil {
		return err // API servers also convert parts of objects, for server-side apply
	}
	unstructured.RemoveNestedField(foo, "spec", "deploymentName")
	return unstructured.SetNestedField(foo, name, "spec", "deployment", "name")
}

// toV1alpha1 moves spec.deployment.name to spec.deploymentName.
func toV1alpha1(foo map[string]any) error {
	name, found, err := unstructured.NestedFieldNoCopy(foo, "spec", "deployment", "name")
	unstructured.RemoveNestedField(foo, "spec", "deployment")
	if !found || err != nil {
		return err
	}
	return unstructured.SetNestedField(foo, name, "spec", "deploymentName")
}
