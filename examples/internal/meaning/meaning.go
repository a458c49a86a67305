// Package meaning says what a Foo means, on any framework: pure functions from Foo to Deployment,
// and from Deployment to status. The repository's controller has them in the deployment.go of its
// package main, which other packages cannot import. So the deployment.go of this package is a copy
// in which some names begin with a capital letter. A test checks that nothing else differs.
package meaning

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// ControllerName is this controller's name wherever it needs one: in the queue's metrics, in
// Events, as field manager, as value of the managed-by label, and as name of its Lease, if any.
const ControllerName = "sample-controller"

// FooKind is the kind of the owner of each Deployment.
var FooKind = schema.GroupVersionKind{
	Group: v1alpha1.GroupName, Version: v1alpha1.GroupVersion.Version, Kind: "Foo",
}
