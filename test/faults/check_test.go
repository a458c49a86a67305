package faults

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// problem is something that is wrong although it is quiet.
type problem struct{ kind, what string }

func (p problem) String() string { return p.kind + ": " + p.what }

// state is what the API server stores in the namespace of a history.
type state struct {
	foos        map[types.UID]*v1alpha1.Foo
	deployments map[string]*appsv1.Deployment
	problems    []problem
}

// problems reads all Foos and Deployments and returns what is wrong.
func (h *history) problems() ([]problem, error) {
	s, err := h.state()
	if err != nil {
		return nil, err
	}
	return s.problems, nil
}

// state reads all Foos and Deployments, and finds out what is wrong.
func (h *history) state() (*state, error) {
	foos, err := h.foos.List(context.Background(), metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	deployments, err := h.deployments.List(context.Background(), metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	s := &state{foos: map[types.UID]*v1alpha1.Foo{}, deployments: map[string]*appsv1.Deployment{}}
	missing := map[string]bool{}
	for name := range h.users.names {
		missing[name] = true
	}
	for _, foo := range foos.Items {
		s.foos[foo.UID] = &foo
		if !missing[foo.Name] {
			s.report(orphaned, "Foo %s was deleted, but still exists", foo.Name)
		}
		delete(missing, foo.Name)
	}
	for name := range missing {
		s.report(lost, "Foo %s is gone, but nobody deleted it", name)
	}
	for _, deployment := range deployments.Items {
		s.deployments[deployment.Name] = &deployment
	}
	for _, foo := range s.foos {
		s.checkFoo(foo)
	}
	for _, deployment := range s.deployments {
		s.checkOwner(deployment)
	}
	return s, nil
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
	if deployment == nil {
		s.report(lost, "Foo %s has no Deployment %s", foo.Name, foo.Spec.DeploymentName)
		return
	}
	want, replicas := "False DeploymentNameTaken", int32(0)
	if metav1.IsControlledBy(deployment, foo) {
		want, replicas = "True Available", *foo.Spec.Replicas
		s.checkDeployment(foo, deployment)
	}
	var got string
	if ready := meta.FindStatusCondition(foo.Status.Conditions, "Ready"); ready != nil {
		got = fmt.Sprint(ready.Status, " ", ready.Reason)
	}
	if got != want {
		s.report(untrue, "Foo %s: Ready is %q, want %q", foo.Name, got, want)
	}
	status := foo.Status
	if status.ObservedGeneration != foo.Generation ||
		status.Replicas != replicas || status.AvailableReplicas != replicas {
		s.report(untrue, "Foo %s: want a status of generation %d with %d replicas, got %+v",
			foo.Name, foo.Generation, replicas, status)
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
}

// checkOwner checks that deployment belongs to a Foo, and that this Foo does not also own the
// Deployment that it names, if that is another one.
func (s *state) checkOwner(deployment *appsv1.Deployment) {
	owner := metav1.GetControllerOf(deployment)
	if owner == nil || s.foos[owner.UID] == nil {
		s.report(orphaned, "Deployment %s belongs to no Foo: %+v", deployment.Name, owner)
		return
	}
	foo := s.foos[owner.UID]
	named := s.deployments[foo.Spec.DeploymentName]
	if named != nil && named != deployment && metav1.IsControlledBy(named, foo) {
		s.report(duplicate, "Foo %s has two Deployments: %s and %s",
			foo.Name, named.Name, deployment.Name)
	}
}
