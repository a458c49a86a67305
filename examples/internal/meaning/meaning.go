// Package meaning is what a Foo means, which is no business of a framework: pure functions from Foo
// to Deployment, and from Deployment to status. The repository's controller has them in
// deployment.go, in its package main, which nobody can import. So deployment.go here is a copy, in
// which some names begin with a capital letter; a test sees that nothing else differs.
package meaning

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// ControllerName is the controller's one identity: in the queue's metrics, in events, as field
// manager, as value of the managed-by label and as name of the Lease.
const ControllerName = "sample-controller"

// FooKind is the kind of the owner of each Deployment.
var FooKind = schema.GroupVersionKind{
	Group: v1alpha1.GroupName, Version: v1alpha1.GroupVersion.Version, Kind: "Foo",
}
