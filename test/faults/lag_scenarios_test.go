package faults

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// lagScenario is what happens to Foo a while the API server that lags shows an older state.
type lagScenario struct {
	name  string
	steps []lagStep
	keeps string // a Deployment that must stay although no Foo names it
}

// lagStep is something that happens. It returns when nothing more follows from it.
type lagStep func(*lagCase) error

var lagScenarios = []lagScenario{
	lags("create").create("x"),
	lags("scale").create("x").scale(3),
	lags("rename").limitPods().create("x").renamePending("y").letPodsCome("y").settle(),
	lags("rename and back").limitPods().create("x").renamePending("y").die().letPodsCome("y").
		renameUnseen("x").work(),
	lags("rename and back unseen").limitPods().create("x").renamePending("y").die().
		letPodsCome("y").renameUnseen("x"),
	lags("rename twice").create("x").rename("y").rename("x"),
	lags("rename to a name that fails").limitPods().create("x").renamePending("y").die().
		letPodsCome("y").failPods("y").keep("x"),
	lags("delete").create("x").deleteFoo(),
	lags("delete before it is seen").die().createUnseen("x").work().deleteFoo(),
	lags("delete without its Deployment").create("x").die().deleteDeployment("x").deleteFoo(),
	lags("delete and create").create("x").deleteFoo().create("x"),
	lags("delete the Deployment").create("x").deleteDeployment("x").settle().die().
		deleteDeployment("x").work(),
}

func lags(name string) lagScenario { return lagScenario{name: name} }

// then adds a step that has these parts.
func (s lagScenario) then(parts ...lagStep) lagScenario {
	s.steps = append(s.steps, func(c *lagCase) error {
		for _, part := range parts {
			if err := part(c); err != nil {
				return err
			}
		}
		return nil
	})
	return s
}

// keep says that this Deployment must stay.
func (s lagScenario) keep(deployment string) lagScenario { s.keeps = deployment; return s }

// settle waits until everything is as it must be.
func (s lagScenario) settle() lagScenario { return s.then((*lagCase).settle) }

// die kills the controller that works with the API server that does not lag.
func (s lagScenario) die() lagScenario { return s.then((*lagCase).die) }

// work starts that controller again, and waits until it has done its work.
func (s lagScenario) work() lagScenario {
	return s.then((*lagCase).startFirst, (*lagCase).settle)
}

// createUnseen creates the Foo, and does not wait for anything.
func (s lagScenario) createUnseen(deployment string) lagScenario {
	return s.then(createsFoo(deployment))
}

func (s lagScenario) create(deployment string) lagScenario {
	return s.then(createsFoo(deployment), (*lagCase).settle)
}

func (s lagScenario) scale(replicas int32) lagScenario {
	return s.then(func(c *lagCase) error {
		return c.change(func(foo *v1alpha1.Foo) { foo.Spec.Replicas = &replicas })
	}, (*lagCase).settle)
}

func (s lagScenario) rename(deployment string) lagScenario {
	return s.then(renames(deployment), (*lagCase).settle)
}

// renameUnseen only changes the Foo.
func (s lagScenario) renameUnseen(deployment string) lagScenario {
	return s.then(renames(deployment))
}

// renamePending waits until the new Deployment exists. It cannot have Pods yet.
func (s lagScenario) renamePending(deployment string) lagScenario {
	return s.then(renames(deployment), func(c *lagCase) error {
		return waitUntil(func() error {
			if err := c.lacksPods(deployment); err != nil {
				return err
			}
			foo, err := c.foos.Get(context.Background(), "a", metav1.GetOptions{})
			if err == nil && foo.Status.ObservedGeneration != foo.Generation {
				err = fmt.Errorf("the status of Foo a is about an older spec: %+v", foo.Status)
			}
			return err
		})
	})
}

// deleteFoo waits until the garbage collector has deleted its Deployment, too.
func (s lagScenario) deleteFoo() lagScenario {
	return s.then(func(c *lagCase) error {
		delete(c.users.names, "a")
		return c.foos.Delete(context.Background(), "a", metav1.DeleteOptions{})
	}, (*lagCase).settle)
}

// deleteDeployment waits until the Deployment is gone, or another one has its name.
func (s lagScenario) deleteDeployment(name string) lagScenario {
	return s.then(func(c *lagCase) error {
		ctx := context.Background()
		old, err := c.deployments.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if err := c.deployments.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			return err
		}
		return waitUntil(func() error {
			now, err := c.deployments.Get(ctx, name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			if err == nil && now.UID == old.UID {
				err = fmt.Errorf("deployment %s is still there", name)
			}
			return err
		})
	})
}

// limitPods makes a second Pod in the namespace impossible.
func (s lagScenario) limitPods() lagScenario { return s.then((*lagCase).limitPods) }

// letPodsCome waits until the Deployment is available.
func (s lagScenario) letPodsCome(deployment string) lagScenario {
	return s.then(func(c *lagCase) error {
		if err := c.allowPods(deployment); err != nil {
			return err
		}
		return waitUntil(func() error {
			d, err := c.deployments.Get(context.Background(), deployment, metav1.GetOptions{})
			if err == nil && d.Status.AvailableReplicas != *d.Spec.Replicas {
				err = fmt.Errorf("deployment %s is not available: %+v", deployment, d.Status)
			}
			return err
		})
	})
}

// failPods makes the Deployment unavailable.
func (s lagScenario) failPods(deployment string) lagScenario {
	return s.then((*lagCase).limitPods, func(c *lagCase) error {
		ctx, pods := context.Background(), kubeClient.CoreV1().Pods(c.namespace)
		return waitUntil(func() error {
			list, err := pods.List(ctx, metav1.ListOptions{})
			if err != nil {
				return err
			}
			for _, pod := range list.Items {
				if strings.HasPrefix(pod.Name, deployment+"-") {
					_ = pods.Delete(ctx, pod.Name, metav1.DeleteOptions{}) // or the next time
				}
			}
			return c.lacksPods(deployment)
		})
	})
}

func createsFoo(deployment string) lagStep {
	return func(c *lagCase) error {
		c.users.names["a"] = deployment
		return waitUntil(c.users.create(newFoo("a", deployment, 1)))
	}
}

func renames(deployment string) lagStep {
	return func(c *lagCase) error {
		c.users.names["a"] = deployment
		return c.change(func(foo *v1alpha1.Foo) { foo.Spec.DeploymentName = deployment })
	}
}
