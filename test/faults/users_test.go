package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/internal/testing/scenarios"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// users create, change and delete Foos and Deployments at random.
type users struct {
	h      *history
	random *rand.Rand
	names  map[string]string // from the Foos that must exist to their Deployments
	// newNames says that no new Foo has the name of a deleted one. It is for when servers are killed:
	// if another Foo has the name when the watch of Kubernetes' garbage collector begins again, the
	// collector misses the deletion, and leaves the first Foo's Deployment behind.
	newNames bool
	deleted  map[int]int // how often each Foo was, with newNames

	// How often the controller had reason to create a Deployment, and to delete one.
	reasonsToCreate, reasonsToDelete int
}

// work creates all Foos and then does one thing after the other.
func (u *users) work() error {
	for i := range *foos {
		if err := u.act(i); err != nil {
			return err
		}
	}
	for range *steps {
		if err := u.act(u.random.IntN(*foos)); err != nil {
			return err
		}
		time.Sleep(time.Duration(u.random.IntN(60)) * time.Millisecond) // at random moments
	}
	return nil
}

// act does one thing with the Foo of that number, and repeats it until it succeeds.
func (u *users) act(i int) error {
	foo := fmt.Sprintf("foo-%d", i)
	if u.deleted[i] > 0 {
		foo = fmt.Sprintf("foo-%d-%d", i, u.deleted[i])
	}
	var what string
	var do func() error
	if deployment, exists := u.names[foo]; exists {
		what, do = u.choose(foo, deployment)
		if u.names[foo] == "" && u.newNames {
			u.deleted[i]++
		}
	} else {
		u.reasonsToCreate++
		what, do = "Foos created", u.create(foo, u.newName(foo))
	}
	if err := waitUntil(do); err != nil {
		return fmt.Errorf("%s, of %s: %w", what, foo, err)
	}
	return nil
}

// choose returns something to do with a Foo that exists, and records the expected result.
func (u *users) choose(foo, deployment string) (what string, do func() error) {
	ctx, replicas, options := context.Background(), u.replicas(), u.deleteOptions()
	switch u.random.IntN(10) {
	case 0, 1, 2:
		return "Foos scaled", u.scale(foo)
	case 3, 4:
		name := u.newName(foo)
		u.names[foo] = name
		u.reasonsToCreate++
		u.reasonsToDelete++
		return "Foos renamed", u.change(foo, func(foo *v1alpha1.Foo) {
			foo.Spec.DeploymentName = name
		})
	case 5, 6:
		return "Deployments deleted", func() error {
			u.reasonsToCreate++ // each time: an attempt whose answer was lost may have deleted it
			return ignoreNotFound(u.h.deployments.Delete(ctx, deployment, options))
		}
	case 7, 8:
		return "Deployments changed", func() error { return u.spoil(deployment, replicas) }
	default:
		delete(u.names, foo)
		return "Foos deleted", func() error { return ignoreNotFound(u.h.foos.Delete(ctx, foo, options)) }
	}
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// replicas returns a small number, because the Pods do not matter here.
func (u *users) replicas() int32 { return u.random.Int32N(4) }

// newName returns a name for the Deployment of a Foo: mostly one of its own, sometimes one of a few
// for which all Foos compete.
func (u *users) newName(foo string) string {
	if u.random.IntN(5) == 0 {
		return fmt.Sprintf("shared-%d", u.random.IntN(5))
	}
	return fmt.Sprintf("%s-%d", foo, u.random.IntN(3))
}

// deleteOptions returns background or, in one of three cases, foreground deletion.
func (u *users) deleteOptions() metav1.DeleteOptions {
	propagation := metav1.DeletePropagationBackground
	if u.random.IntN(3) == 0 {
		propagation = metav1.DeletePropagationForeground
	}
	return metav1.DeleteOptions{PropagationPolicy: &propagation}
}

// create returns a function that creates a Foo, and records that it must exist. The function fails
// while a Foo of that name is being deleted.
func (u *users) create(name, deployment string) func() error {
	u.names[name] = deployment
	foo := &v1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.FooSpec{DeploymentName: deployment, Replicas: new(u.replicas())},
	}
	return func() error {
		_, err := u.h.foos.Create(context.Background(), foo, metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		existing, getErr := u.h.foos.Get(context.Background(), foo.Name, metav1.GetOptions{})
		if getErr == nil && existing.DeletionTimestamp == nil {
			return nil // created by an attempt whose answer was lost
		}
		return errors.Join(err, getErr)
	}
}

func (u *users) scale(name string) func() error {
	replicas := u.replicas()
	return u.change(name, func(foo *v1alpha1.Foo) { foo.Spec.Replicas = &replicas })
}

// change returns a function that changes a Foo. It fails if somebody else does so meanwhile.
func (u *users) change(name string, change func(*v1alpha1.Foo)) func() error {
	return func() error {
		foo, err := u.h.foos.Get(context.Background(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(foo)
		_, err = u.h.foos.Update(context.Background(), foo, metav1.UpdateOptions{})
		return err
	}
}

func (u *users) spoil(name string, replicas int32) error {
	deployment, err := u.h.deployments.Get(context.Background(), name, metav1.GetOptions{})
	if err == nil {
		deployment.Spec.Replicas = &replicas
		for i := range deployment.Spec.Template.Spec.Containers {
			deployment.Spec.Template.Spec.Containers[i].Image = scenarios.EvilImage
		}
		_, err = u.h.deployments.Update(context.Background(), deployment, metav1.UpdateOptions{})
	}
	return ignoreNotFound(err)
}

// createAndScale creates all Foos and scales some, slowly, so that much can happen meanwhile. It
// does not stop before a process has ended.
func (u *users) createAndScale(ended <-chan struct{}) error {
	for i := 0; ; i++ {
		select {
		case <-ended:
			if i >= *foos+*steps {
				return nil
			}
		default:
		}
		name := fmt.Sprintf("foo-%d", i%*foos)
		what, do := "Foos scaled", u.scale(name)
		if i < *foos {
			what, do = "Foos created", u.create(name, name)
		}
		if err := waitUntil(do); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		time.Sleep(time.Duration(u.random.IntN(120)) * time.Millisecond) // at random moments
	}
}
