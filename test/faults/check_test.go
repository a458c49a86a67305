package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/sample-controller/internal/testing/scenarios"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// state is what the API server stores in a namespace.
type state struct {
	foos        []*v1alpha1.Foo
	deployments []*appsv1.Deployment
	problems    []string // what is wrong when it is quiet
}

// state reads all Foos and Deployments, and finds out what is wrong.
func (s *space) state() (*state, error) {
	foos, err := s.foos.List(context.Background(), metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	deployments, err := s.deployments.List(context.Background(), metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	is := &state{}
	owners := map[types.UID]bool{}
	for i := range foos.Items {
		is.foos = append(is.foos, &foos.Items[i])
		owners[foos.Items[i].UID] = true
	}
	for i := range deployments.Items {
		is.deployments = append(is.deployments, &deployments.Items[i])
	}
	is.problems = scenarios.Problems(is.foos, is.deployments)
	for _, d := range is.deployments {
		if owner := metav1.GetControllerOf(d); owner != nil && !owners[owner.UID] {
			is.report("Deployment %s belongs to no Foo: %+v", d.Name, owner)
		}
		if d.DeletionTimestamp != nil && !slices.Contains(d.Finalizers, "example.com/held") {
			is.report("Deployment %s is being deleted", d.Name)
		} else if d.DeletionTimestamp == nil && !scenarios.IsAvailable(d) {
			is.report("Deployment %s is not rolled out: %+v", d.Name, d.Status)
		}
	}
	return is, nil
}

func (s *state) report(format string, args ...any) {
	s.problems = append(s.problems, fmt.Sprintf(format, args...))
}

func (s *state) err() error {
	var errs []error
	for _, problem := range s.problems {
		errs = append(errs, errors.New(problem))
	}
	return errors.Join(errs...)
}

// pending returns how many Deployments Foos wait for, because another one has the name, and how
// many former ones are there because of that.
func (s *state) pending() (toCreate, toDelete int) {
	for _, foo := range s.foos {
		has := slices.ContainsFunc(s.deployments, func(d *appsv1.Deployment) bool {
			return d.Name == foo.Spec.DeploymentName && metav1.IsControlledBy(d, foo)
		})
		if !has {
			toCreate++
		}
	}
	return toCreate, len(s.deployments) - (len(s.foos) - toCreate)
}
