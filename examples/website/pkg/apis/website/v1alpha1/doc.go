// Package v1alpha1 is the API of website-controller: the Website resource.
//
// This file and types.go are written by hand; hack/update-codegen.sh makes everything else from
// them: the zz_generated files, pkg/generated and the CustomResourceDefinition.
//
// +k8s:deepcopy-gen=package
// +groupName=website.example.com
// +groupGoName=Website
package v1alpha1
