// Package foos describes to the package explore what users do with Foos, and what they want. All
// programs that keep a Deployment for each Foo are explored with it.
package foos

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/explore"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

var (
	create = explore.Create(`
apiVersion: samplecontroller.k8s.io/v1alpha1
kind: Foo
metadata: {name: a}
spec: {deploymentName: x, replicas: 1}`)
	foreign = explore.Create(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: x}
spec:
  selector: {matchLabels: {app: other}}
  template:
    metadata: {labels: {app: other}}
    spec: {containers: [{name: other, image: other}]}`)
	scale            = explore.Patch("foos/a", "spec: {replicas: 3}")
	rename           = explore.Patch("foos/a", "spec: {deploymentName: 'y'}")
	deleteFoo        = explore.Delete("foos/a")
	deleteDeployment = explore.Delete("deployments.apps/x")
	release          = explore.Patch("deployments.apps/x", "metadata: {ownerReferences: null}")
	spoil            = explore.Patch("deployments.apps/x",
		"spec: {replicas: 7, template: {spec: {containers: [{name: web, image: evil}]}}}")
)

func steps(steps ...explore.Step) []explore.Step { return steps }

var scenarios = []explore.Scenario{
	{Name: "create", Steps: steps(create)},
	{Name: "scale", Steps: steps(create, scale)},
	{Name: "repair", Steps: steps(create, spoil)},
	{Name: "deleted", Steps: steps(create, deleteDeployment)},
	{Name: "rename", Steps: steps(create, rename)},
	{Name: "delete and create", Steps: steps(create, deleteFoo, create)},
	{Name: "taken", Steps: steps(foreign, create, deleteDeployment)},
	{Name: "released", Steps: steps(create, release, deleteDeployment)},
}

// problems returns what is wrong with Foo a when everything is quiet.
func problems(now explore.State) (problems []string) {
	foo := explore.Get[v1alpha1.Foo](now, "foos", "a")
	for _, d := range explore.List[appsv1.Deployment](now, "deployments.apps") {
		foreign := d.Spec.Template.Spec.Containers[0].Image == "other"
		if !foreign && (foo == nil || d.Name != foo.Spec.DeploymentName) {
			problems = append(problems, "a Deployment is left over")
		}
	}
	if foo == nil {
		return problems
	}
	d := explore.Get[appsv1.Deployment](now, "deployments.apps", foo.Spec.DeploymentName)
	if d == nil {
		problems = append(problems, "the Foo has no Deployment")
	} else if !metav1.IsControlledBy(d, foo) {
		problems = append(problems, "the Foo does not own its Deployment")
	}
	if d != nil && (*d.Spec.Replicas != *foo.Spec.Replicas ||
		d.Spec.Template.Spec.Containers[0].Image == "evil") {
		problems = append(problems, "the Deployment is not what the Foo asks for")
	}
	ready := meta.FindStatusCondition(foo.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case ready == nil:
		problems = append(problems, "the status says nothing")
	case ready.Status != metav1.ConditionTrue:
		problems = append(problems, fmt.Sprintf("the status says %s", ready.Reason))
	}
	return problems
}
