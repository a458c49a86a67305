package faults

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// evilImage is the image that users put into Deployments. It must not stay there.
const evilImage = "example.com/evil:1"

// users create, change and delete Foos and Deployments at random.
type users struct {
	h      *history
	random *rand.Rand
	names  map[string]string // from the Foos that must exist to their Deployments
	// newNames says that no new Foo has the name of a deleted one. It is for when the API server is
	// killed: if another Foo has the name when the watch of Kubernetes' garbage collector begins
	// again, the collector misses the deletion, and leaves the first Foo's Deployment behind.
	newNames bool
	deleted  map[int]int // how often each Foo was, with newNames

	// How often the controller had reason to create a Deployment, and to delete one.
	reasonsToCreate, reasonsToDelete int
}

// expected returns what must be there when it is quiet.
func (u *users) expected() expected {
	e := expected{names: map[string]bool{}}
	for name := range u.names {
		e.names[name] = true
	}
	return e
}

// act does one thing with the Foo of that number, and repeats it until it succeeds.
func (u *users) act(i int) error {
	foo := fmt.Sprintf("foo-%d", i)
	if u.deleted[i] > 0 {
		foo = fmt.Sprintf("foo-%d-%d", i, u.deleted[i])
	}
	deployment, exists := u.names[foo]
	var what string
	var do func() error
	if exists {
		what, do = u.choose(foo, deployment)
		if u.names[foo] == "" && u.newNames {
			u.deleted[i]++
		}
	} else {
		deployment = u.newName(foo)
		u.names[foo] = deployment
		u.reasonsToCreate++
		what, do = "Foos created", u.create(newFoo(foo, deployment, u.replicas()))
	}
	total.count(what)
	err := waitUntil(do)
	if err != nil {
		err = fmt.Errorf("%s, %s of %s: %w", what, deployment, foo, err)
	}
	return err
}

// choose returns something to do with a Foo that exists, and records the expected result.
func (u *users) choose(foo, deployment string) (what string, do func() error) {
	switch u.random.IntN(10) {
	case 0, 1, 2:
		return "Foos scaled", u.scale(foo)
	case 3, 4:
		name := u.newName(foo)
		u.names[foo] = name
		u.reasonsToCreate++
		u.reasonsToDelete++
		return "Foos renamed", u.changeFoo(foo, func(foo *v1alpha1.Foo) {
			foo.Spec.DeploymentName = name
		})
	case 5, 6:
		return "Deployments deleted", u.deleteDeployment(deployment)
	case 7, 8:
		return "Deployments changed", u.changeDeployment(deployment)
	default:
		delete(u.names, foo)
		return "Foos deleted", u.deleteFoo(foo)
	}
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

func newFoo(name, deployment string, replicas int32) *v1alpha1.Foo {
	return &v1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.FooSpec{DeploymentName: deployment, Replicas: &replicas},
	}
}

// create returns a function that creates foo. It fails while a Foo of that name is being deleted.
func (u *users) create(foo *v1alpha1.Foo) func() error {
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

// scale returns a function that scales a Foo.
func (u *users) scale(name string) func() error {
	replicas := u.replicas()
	return u.changeFoo(name, func(foo *v1alpha1.Foo) { foo.Spec.Replicas = &replicas })
}

// changeFoo returns a function that changes a Foo.
func (u *users) changeFoo(name string, change func(*v1alpha1.Foo)) func() error {
	return func() error { return u.h.changeFoo(name, change) }
}

// deleteFoo returns a function that deletes a Foo.
func (u *users) deleteFoo(name string) func() error {
	options := u.deleteOptions()
	return func() error {
		err := u.h.foos.Delete(context.Background(), name, options)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}
}

// deleteOptions returns background or, in one of three cases, foreground deletion.
func (u *users) deleteOptions() metav1.DeleteOptions {
	propagation := metav1.DeletePropagationBackground
	if u.random.IntN(3) == 0 {
		propagation = metav1.DeletePropagationForeground
	}
	return metav1.DeleteOptions{PropagationPolicy: &propagation}
}

// deleteDeployment returns a function that deletes a Deployment, if it exists.
func (u *users) deleteDeployment(name string) func() error {
	options := u.deleteOptions()
	return func() error {
		u.reasonsToCreate++ // each time: an attempt whose answer was lost may have deleted it
		err := u.h.deployments.Delete(context.Background(), name, options)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}
}

// changeDeployment returns a function that changes the replicas and the image of a Deployment, if
// it exists.
func (u *users) changeDeployment(name string) func() error {
	replicas := u.replicas()
	return func() error {
		err := u.h.changeDeployment(name, func(deployment *appsv1.Deployment) {
			setEvil(deployment, replicas)
		})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}
}

func setEvil(deployment *appsv1.Deployment, replicas int32) {
	deployment.Spec.Replicas = &replicas
	for i := range deployment.Spec.Template.Spec.Containers {
		deployment.Spec.Template.Spec.Containers[i].Image = evilImage
	}
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

// workUntil does one thing after the other until that time.
func (u *users) workUntil(end time.Time) error {
	for time.Now().Before(end) {
		if err := u.act(u.random.IntN(*foos)); err != nil {
			return err
		}
		time.Sleep(time.Duration(u.random.IntN(200)) * time.Millisecond) // at random moments
	}
	return nil
}

// scaleAll scales all Foos.
func (u *users) scaleAll() error {
	for _, name := range slices.Sorted(maps.Keys(u.names)) {
		total.count("Foos scaled")
		if err := waitUntil(u.scale(name)); err != nil {
			return fmt.Errorf("scaling %s: %w", name, err)
		}
	}
	return nil
}
