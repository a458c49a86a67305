package faults

import (
	"context"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// problem is something that is wrong although it is quiet.
type problem struct{ kind, what string }

func (p problem) String() string { return p.kind + ": " + p.what }

// heldFinalizer is that of somebody who holds an object that is being deleted.
const heldFinalizer = "example.com/held"

// managedByLabel is on the Deployments of Foos.
const managedByLabel = "app.kubernetes.io/managed-by"

// expected is what must be in a namespace when it is quiet.
type expected struct {
	names   map[string]bool // the names of those that exist
	foreign map[string]bool // the names of Deployments that belong to nobody
	// These say that the API server refuses to create or change such objects.
	noDeployments, noPods bool
	annotation            string // which somebody wrote to all Deployments
}

// state is what the API server stores in a namespace.
type state struct {
	expected
	foos        map[types.UID]*v1alpha1.Foo
	deployments map[string]*appsv1.Deployment
	problems    []problem
}

// problems reads all Foos and Deployments and returns what is wrong.
func (s *space) problems(e expected) ([]problem, error) {
	is, err := s.state(e)
	if err != nil {
		return nil, err
	}
	return is.problems, nil
}

// state reads all Foos and Deployments, and finds out what is wrong.
func (s *space) state(e expected) (*state, error) {
	foos, err := s.foos.List(context.Background(), metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	deployments, err := s.deployments.List(context.Background(), metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	is := &state{
		expected: e, foos: map[types.UID]*v1alpha1.Foo{}, deployments: map[string]*appsv1.Deployment{},
	}
	missing := maps.Clone(e.names)
	for _, foo := range foos.Items {
		is.foos[foo.UID] = &foo
		if !missing[foo.Name] {
			is.report(orphaned, "Foo %s was deleted, but still exists", foo.Name)
		}
		delete(missing, foo.Name)
	}
	for name := range missing {
		is.report(lost, "Foo %s is gone, but nobody deleted it", name)
	}
	for _, deployment := range deployments.Items {
		is.deployments[deployment.Name] = &deployment
	}
	for _, foo := range is.foos {
		is.checkFoo(foo)
	}
	for _, deployment := range is.deployments {
		is.checkOwner(deployment)
	}
	return is, nil
}

// pending returns how many Deployments Foos wait for, because another one has the name, and how
// many former ones are there because of that.
func (s *state) pending() (toCreate, toDelete int) {
	for _, foo := range s.foos {
		named := s.deployments[foo.Spec.DeploymentName]
		if named == nil || !metav1.IsControlledBy(named, foo) {
			toCreate++
		}
	}
	for _, deployment := range s.deployments {
		owner := metav1.GetControllerOf(deployment)
		if owner == nil || s.foos[owner.UID] == nil ||
			s.foos[owner.UID].Spec.DeploymentName != deployment.Name {
			toDelete++
		}
	}
	return toCreate, toDelete
}

func (s *state) report(kind, format string, args ...any) {
	s.problems = append(s.problems, problem{kind, fmt.Sprintf(format, args...)})
}

// checkFoo checks that foo has its Deployment, or says why not, and that its status is true.
func (s *state) checkFoo(foo *v1alpha1.Foo) {
	deployment := s.deployments[foo.Spec.DeploymentName]
	want := wantedStatus{ready: "False DeploymentNameTaken"}
	if deployment == nil || !metav1.IsControlledBy(deployment, foo) {
		switch {
		case foo.DeletionTimestamp != nil:
			want.ready = "False FooTerminating"
		case deployment == nil && s.noDeployments:
			want.ready = "False DeploymentRejected"
		case deployment == nil:
			s.report(lost, "Foo %s has no Deployment %s", foo.Name, foo.Spec.DeploymentName)
			return
		}
	} else if want = s.unfinished(foo, deployment); want.ready == "" {
		want = wantedStatus{"True Available", *foo.Spec.Replicas, *foo.Spec.Replicas}
		s.checkDeployment(foo, deployment)
	}
	s.checkStatus(foo, want)
}

// wantedStatus is what the status of a Foo must say.
type wantedStatus struct {
	ready               string // the status and the reason of the condition
	replicas, available int32
}

// unfinished returns the status of a Foo whose Deployment cannot become what the Foo asks for,
// until somebody lets it. If it can, the result is empty.
func (s *state) unfinished(foo *v1alpha1.Foo, deployment *appsv1.Deployment) wantedStatus {
	status := deployment.Status
	differs := *deployment.Spec.Replicas != *foo.Spec.Replicas
	ready := ""
	switch {
	case foo.DeletionTimestamp != nil && differs:
		ready = "False FooTerminating"
	case isHeld(deployment):
		ready = "False DeploymentTerminating"
	case s.noDeployments && differs:
		ready = "False DeploymentRejected"
	case s.noPods && status.AvailableReplicas == 0:
		ready = "False FailedCreate"
	}
	return wantedStatus{ready, status.Replicas, status.AvailableReplicas}
}

// isHeld reports whether a finalizer holds a Deployment that is being deleted.
func isHeld(deployment *appsv1.Deployment) bool {
	return deployment.DeletionTimestamp != nil &&
		slices.Equal(deployment.Finalizers, []string{heldFinalizer})
}

// checkStatus checks that the status of foo is true.
func (s *state) checkStatus(foo *v1alpha1.Foo, want wantedStatus) {
	var got string
	if ready := meta.FindStatusCondition(foo.Status.Conditions, "Ready"); ready != nil {
		got = fmt.Sprint(ready.Status, " ", ready.Reason)
	}
	if got != want.ready {
		s.report(untrue, "Foo %s: Ready is %q, want %q", foo.Name, got, want.ready)
	}
	status := foo.Status
	if status.ObservedGeneration != foo.Generation ||
		status.Replicas != want.replicas || status.AvailableReplicas != want.available {
		s.report(untrue, "Foo %s: want a status of generation %d with %d replicas, %d available, got %+v",
			foo.Name, foo.Generation, want.replicas, want.available, status)
	}
}

// checkDeployment checks that deployment is what its Foo asks for.
func (s *state) checkDeployment(foo *v1alpha1.Foo, deployment *appsv1.Deployment) {
	if deployment.DeletionTimestamp != nil {
		s.report(lost, "Deployment %s of Foo %s is being deleted", deployment.Name, foo.Name)
	}
	got, want := *deployment.Spec.Replicas, *foo.Spec.Replicas
	image := deployment.Spec.Template.Spec.Containers[0].Image
	if got != want || image == evilImage {
		s.report(lost, "Deployment %s of Foo %s has %d replicas of %s, want %d of another image",
			deployment.Name, foo.Name, got, image, want)
	}
	if is := deployment.Status; is.ObservedGeneration < deployment.Generation ||
		is.Replicas != want || is.UpdatedReplicas != want || is.AvailableReplicas != want {
		s.report(untrue, "Deployment %s of Foo %s is not rolled out: %d of %d replicas, %d updated, "+
			"%d available", deployment.Name, foo.Name, is.Replicas, want, is.UpdatedReplicas,
			is.AvailableReplicas)
	}
	if deployment.Labels[managedByLabel] == "" {
		s.report(lost, "Deployment %s of Foo %s has no label %s", deployment.Name, foo.Name,
			managedByLabel)
	}
	if s.annotation != "" && deployment.Annotations[s.annotation] == "" {
		s.report(lost, "Deployment %s of Foo %s has lost its annotation", deployment.Name, foo.Name)
	}
}

// checkOwner checks that deployment belongs to a Foo, and that this Foo does not also own the
// Deployment that it names, if that is another one and may become available.
func (s *state) checkOwner(deployment *appsv1.Deployment) {
	owner := metav1.GetControllerOf(deployment)
	if s.foreign[deployment.Name] {
		if owner != nil || deployment.Generation != 1 {
			s.report(lost, "somebody else's Deployment %s was changed", deployment.Name)
		}
		return
	}
	if isHeld(deployment) {
		return
	}
	if owner == nil || s.foos[owner.UID] == nil {
		s.report(orphaned, "Deployment %s belongs to no Foo: %+v", deployment.Name, owner)
		return
	}
	foo := s.foos[owner.UID]
	named := s.deployments[foo.Spec.DeploymentName]
	if named != nil && named != deployment && metav1.IsControlledBy(named, foo) && !s.noPods {
		s.report(duplicate, "Foo %s has two Deployments: %s and %s",
			foo.Name, named.Name, deployment.Name)
	}
}
