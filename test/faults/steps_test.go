package faults

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// step is one thing that a user or the cluster does in a scenario. The next one begins when until
// returns nil.
type step struct {
	what  string
	do    func(*play) error
	until func(*play) error
}

// endingWith returns the step with another end.
func (s step) endingWith(until func(*play) error) step {
	s.until = until
	return s
}

// beginningWith returns the step with something that the play notes before it.
func (s step) beginningWith(note func(*play)) step {
	do := s.do
	s.do = func(p *play) error {
		note(p)
		return do(p)
	}
	return s
}

// atOnce is the end of a step of which nothing can be seen.
func atOnce(*play) error { return nil }

// absent is a number of replicas that a Foo does not have.
const absent = -1

// count returns the replicas as a Foo has them.
func count(replicas int32) *int32 {
	if replicas == absent {
		return nil
	}
	return &replicas
}

func create(foo, deployment string) step { return createWith(foo, deployment, 1) }

func createWith(foo, deployment string, replicas int32) step {
	return step{"creating Foo " + foo, func(p *play) error {
		p.names[foo] = true
		p.reasonsToCreate++
		object := newFoo(foo, deployment, 1)
		object.Spec.Replicas = count(replicas)
		_, err := p.foos.Create(context.Background(), object, metav1.CreateOptions{})
		return err
	}, allRight}
}

func scale(foo string, replicas int32) step {
	return onFoo("scaling", foo, func(foo *v1alpha1.Foo) { foo.Spec.Replicas = count(replicas) })
}

func rename(foo, deployment string) step {
	return onFoo("renaming", foo, func(foo *v1alpha1.Foo) {
		foo.Spec.DeploymentName = deployment
	}).beginningWith(func(p *play) {
		p.reasonsToCreate++
		p.reasonsToDelete++
	})
}

func holdFoo(foo string) step {
	return onFoo("holding", foo, func(foo *v1alpha1.Foo) {
		foo.Finalizers = []string{heldFinalizer}
	})
}

// letFooGo ends the deletion of a Foo that is held.
func letFooGo(foo string) step {
	return onFoo("letting go", foo, func(foo *v1alpha1.Foo) {
		foo.Finalizers = nil
	}).beginningWith(func(p *play) { delete(p.names, foo) })
}

// onFoo returns a step that changes a Foo.
func onFoo(what, name string, change func(*v1alpha1.Foo)) step {
	return step{fmt.Sprintf("%s Foo %s", what, name), func(p *play) error {
		return waitUntil(func() error { return p.changeFoo(name, change) })
	}, allRight}
}

func deleteFoo(foo string) step {
	return deleteHeldFoo(foo).beginningWith(func(p *play) { delete(p.names, foo) })
}

// deleteHeldFoo deletes a Foo that stays because it is held.
func deleteHeldFoo(foo string) step {
	return step{"deleting Foo " + foo, func(p *play) error {
		return p.foos.Delete(context.Background(), foo, metav1.DeleteOptions{})
	}, allRight}
}

// createForeign creates a Deployment that belongs to nobody, with or without the label.
func createForeign(name string, labels map[string]string) step {
	return step{"creating Deployment " + name, func(p *play) error {
		p.foreign[name] = true
		deployment := foreignDeployment(name)
		deployment.Labels = labels
		_, err := p.deployments.Create(context.Background(), deployment, metav1.CreateOptions{})
		return err
	}, allRight}
}

// onDeployment returns a step that changes a Deployment.
func onDeployment(what, name string, change func(*appsv1.Deployment)) step {
	return step{fmt.Sprintf("%s Deployment %s", what, name), func(p *play) error {
		return waitUntil(func() error { return p.changeDeployment(name, change) })
	}, allRight}
}

// spoil changes what the controller must set back.
func spoil(name string) step {
	return onDeployment("spoiling", name, func(d *appsv1.Deployment) { setEvil(d, 2) })
}

func annotate(name string) step {
	const annotation = "example.com/team"
	return onDeployment("annotating", name, func(d *appsv1.Deployment) {
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, annotation, "blue")
	}).beginningWith(func(p *play) { p.annotation = annotation })
}

func pause(name string) step {
	return onDeployment("pausing", name, func(d *appsv1.Deployment) { d.Spec.Paused = true })
}

func takeLabelOff(name string) step {
	return onDeployment("taking the label off", name, func(d *appsv1.Deployment) {
		delete(d.Labels, managedByLabel)
	})
}

// release makes a Deployment belong to nobody.
func release(name string) step {
	return onDeployment("releasing", name, func(d *appsv1.Deployment) {
		d.OwnerReferences = nil
	}).beginningWith(func(p *play) { p.foreign[name] = true })
}

// hold makes a Deployment stay when it is deleted, until letGo.
func hold(name string) step {
	return onDeployment("holding", name, func(d *appsv1.Deployment) {
		d.Finalizers = append(d.Finalizers, heldFinalizer)
	})
}

func letGo(name string) step {
	return onDeployment("letting go", name, func(d *appsv1.Deployment) {
		d.Finalizers = slices.DeleteFunc(d.Finalizers, func(finalizer string) bool {
			return finalizer == heldFinalizer
		})
	})
}

func deleteDeployment(name string, propagation metav1.DeletionPropagation) step {
	return step{"deleting Deployment " + name, func(p *play) error {
		delete(p.foreign, name)
		p.reasonsToCreate++
		return p.deployments.Delete(context.Background(), name,
			metav1.DeleteOptions{PropagationPolicy: &propagation})
	}, allRight}
}

// setRefused makes the API server refuse Deployments, or accept them.
func setRefused(refused bool) step {
	return step{fmt.Sprintf("refusing Deployments: %t", refused), func(p *play) error {
		p.noDeployments = refused
		return p.setPolicy(refuseDeployments, refused)
	}, allRight}
}

// stopRollouts makes the API server refuse Pods.
func stopRollouts() step {
	return step{"refusing Pods", func(p *play) error {
		p.noPods = true
		return p.setPolicy(refusePods, true)
	}, allRight}
}

func deleteNamespace() step {
	return step{"deleting the namespace", func(p *play) error {
		clear(p.names)
		return kubeClient.CoreV1().Namespaces().Delete(context.Background(), p.namespace,
			metav1.DeleteOptions{})
	}, allRight}
}

func restart() step {
	return step{"restarting the controller", func(p *play) error {
		p.last().die()
		return nil
	}, allRight}
}

// holdWatch holds the watch of a resource. If the process dies, the next one has no such watch.
func holdWatch(resource string) step {
	return step{"holding the watch of " + resource, func(p *play) error {
		p.last().HoldWatch(resource, time.Hour)
		p.held = p.last()
		return nil
	}, allRight}
}

func letWatchGo(resource string) step {
	return step{"letting the watch go of " + resource, func(p *play) error {
		p.held.HoldWatch(resource, 0)
		p.held = nil
		return nil
	}, allRight}
}

// hasAsked waits until a process whose watch of Foos is held has asked the API server for a Foo.
func hasAsked(foo string) func(*play) error {
	return func(p *play) error {
		w := p.last()
		p.mu.Lock()
		defer p.mu.Unlock()
		if w == p.held && w.times["get-foos-"+foo] == 0 {
			return fmt.Errorf("the controller has not asked for Foo %s", foo)
		}
		return nil
	}
}

// exists waits until a Deployment exists.
func exists(name string) func(*play) error {
	return func(p *play) error {
		_, err := p.deployments.Get(context.Background(), name, metav1.GetOptions{})
		return err
	}
}

// both waits for two things.
func both(one, other func(*play) error) func(*play) error {
	return func(p *play) error {
		if err := one(p); err != nil {
			return err
		}
		return other(p)
	}
}
