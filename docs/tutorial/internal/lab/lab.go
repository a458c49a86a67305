// Package lab is for the tests of the chapters. They run the programs on fake clients, and in a
// bubble, whose clock stands still while any goroutine can run. The harness of the finished
// controller, controller_harness_test.go, follows the same idea.
package lab

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kubeinformers "k8s.io/client-go/informers"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"example.com/sample-controller/docs/foos"
	"example.com/sample-controller/internal/testing/fakes"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
	fooinformers "example.com/sample-controller/pkg/generated/informers/externalversions"
	informers "example.com/sample-controller/pkg/generated/informers/externalversions/samplecontroller/v1alpha1"
)

// Namespace is where everything happens.
const Namespace = "default"

// Lab is the environment of a program. Its methods do what users do, and then wait until the
// program has nothing more to do.
type Lab struct {
	fakes.Clients
	T      *testing.T    // of the bubble
	Errors *atomic.Int32 // reported by the program so far
}

// Explore explores program. docs/explore.md must say what that finds, in the row of the chapter.
func Explore(t *testing.T, page string, program Program) {
	t.Helper()
	foos.Expect(t, "../../..", page, func(ctx context.Context, config *rest.Config) error {
		kube, err := kubernetes.NewForConfig(config)
		if err != nil {
			return err
		}
		foo, err := clientset.NewForConfig(config)
		if err != nil {
			return err
		}
		return program(ctx, kube, foo)
	})
}

// Run runs test in a new lab.
func Run(t *testing.T, test func(*testing.T, *Lab)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		test(t, &Lab{Clients: fakes.New(), T: t, Errors: fakes.CountErrors(t)})
	})
}

// Program is a program of a chapter, without what finds the cluster.
type Program = func(context.Context, kubernetes.Interface, clientset.Interface) error

// Work returns a program that works as run does in the chapters, with two workers.
func Work[C interface{ Run(context.Context, int) }](newController func(
	kubernetes.Interface, clientset.Interface, informers.TypedFooInformer,
	appsinformers.TypedDeploymentInformer,
) (C, error)) Program {
	return func(ctx context.Context, kube kubernetes.Interface, foo clientset.Interface) error {
		kubeFactory := kubeinformers.NewSharedInformerFactory(kube, 0)
		fooFactory := fooinformers.NewSharedInformerFactory(foo, 0)
		controller, err := newController(kube, foo,
			fooFactory.Samplecontroller().V1alpha1().Foos(), kubeFactory.Apps().V1().Deployments())
		if err != nil {
			return err
		}
		kubeFactory.StartWithContext(ctx)
		fooFactory.StartWithContext(ctx)
		controller.Run(ctx, 2)
		kubeFactory.Shutdown()
		fooFactory.Shutdown()
		return nil
	}
}

// StartProgram runs program until the test ends.
func (l *Lab) StartProgram(program Program) {
	l.Start(func(ctx context.Context) {
		if err := program(ctx, l.Kube, l.Foo); err != nil {
			l.T.Error(err)
		}
	})
}

// Start runs program until the test ends, or until the returned function is called.
func (l *Lab) Start(program func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		program(ctx)
	}()
	stop = func() {
		cancel()
		<-stopped
	}
	l.T.Cleanup(stop)
	synctest.Wait()
	return stop
}

// Fail makes the next requests of that verb and resource fail.
func (l *Lab) Fail(verb, resource string, times int) {
	l.Clients.Fail(verb, resource, times, apierrors.NewInternalError(errors.New("made to fail")))
}

// Requests returns how many requests of that verb and resource the program has made. "*" means any.
func (l *Lab) Requests(verb, resource string) int {
	n := 0
	for _, action := range append(l.Kube.Actions(), l.Foo.Actions()...) {
		if (verb == "*" || verb == action.GetVerb()) &&
			(resource == "*" || resource == action.GetResource().Resource) {
			n++
		}
	}
	return n
}

// CreateFoo creates a Foo.
func (l *Lab) CreateFoo(name, deploymentName string, replicas int32) {
	l.T.Helper()
	l.must(l.FooTracker.Create(foosGVR, &v1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: Namespace, UID: types.UID("uid-of-" + name), Generation: 1,
		},
		Spec: v1alpha1.FooSpec{DeploymentName: deploymentName, Replicas: &replicas},
	}, Namespace))
}

// ChangeFoo changes a Foo, and increments its generation as the API server does.
func (l *Lab) ChangeFoo(name string, change func(*v1alpha1.Foo)) {
	l.T.Helper()
	foo := l.GetFoo(name)
	change(foo)
	foo.Generation++
	l.must(l.FooTracker.Update(foosGVR, foo, Namespace))
}

// GetFoo returns a Foo, which must exist.
func (l *Lab) GetFoo(name string) *v1alpha1.Foo {
	l.T.Helper()
	object, err := l.FooTracker.Get(foosGVR, Namespace, name)
	if err != nil {
		l.T.Fatal(err)
	}
	return object.(*v1alpha1.Foo)
}

// Ready returns the status and the reason of the Ready condition of the Foo example-foo.
func (l *Lab) Ready() string {
	ready := meta.FindStatusCondition(l.GetFoo("example-foo").Status.Conditions, "Ready")
	if ready == nil {
		return "absent"
	}
	return string(ready.Status) + " " + ready.Reason
}

// CreateDeployment creates a Deployment that has nothing to do with Foos.
func (l *Lab) CreateDeployment(name string, replicas int32) {
	l.T.Helper()
	l.must(l.KubeTracker.Create(deploymentsGVR, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: Namespace},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas},
	}, Namespace))
}

// ChangeDeployment changes a Deployment.
func (l *Lab) ChangeDeployment(name string, change func(*appsv1.Deployment)) {
	l.T.Helper()
	deployment := l.GetDeployment(name)
	if deployment == nil {
		l.T.Fatalf("there is no Deployment %s", name)
	}
	change(deployment)
	l.must(l.KubeTracker.Update(deploymentsGVR, deployment, Namespace))
}

// RollOut makes all Pods of a Deployment available, as the Deployment controller would.
func (l *Lab) RollOut(name string) {
	l.T.Helper()
	l.ChangeDeployment(name, func(deployment *appsv1.Deployment) {
		replicas := *deployment.Spec.Replicas
		deployment.Status = appsv1.DeploymentStatus{
			Replicas: replicas, UpdatedReplicas: replicas, AvailableReplicas: replicas,
		}
	})
}

// DeleteDeployment deletes a Deployment.
func (l *Lab) DeleteDeployment(name string) {
	l.T.Helper()
	l.must(l.KubeTracker.Delete(deploymentsGVR, Namespace, name))
}

// GetDeployment returns a Deployment, or nil if there is none.
func (l *Lab) GetDeployment(name string) *appsv1.Deployment {
	l.T.Helper()
	object, err := l.KubeTracker.Get(deploymentsGVR, Namespace, name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		l.T.Fatal(err)
	}
	return object.(*appsv1.Deployment)
}

var (
	deploymentsGVR = appsv1.SchemeGroupVersion.WithResource("deployments")
	foosGVR        = v1alpha1.Resource("foos").WithVersion("v1alpha1")
)

func (l *Lab) must(err error) {
	l.T.Helper()
	if err != nil {
		l.T.Fatal(err)
	}
	synctest.Wait()
}
