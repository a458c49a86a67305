// Package v1beta1 is the API of sample-controller: the Foo resource.
//
// This file and types.go are written by hand; hack/update-codegen.sh makes everything else from
// them: the zz_generated files, pkg/generated and the CustomResourceDefinition.
//
// +k8s:deepcopy-gen=package
// +groupName=samplecontroller.k8s.io
// +groupGoName=Samplecontroller
package v1beta1
